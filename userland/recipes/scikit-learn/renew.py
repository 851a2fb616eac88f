"""What rich, which scikit-learn imports if it is there, finds out when it is imported."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _note_directory(rich: Any) -> None:
    """The directory of relative file names in tracebacks."""
    try:
        rich._IMPORT_CWD = os.getcwd()
    except FileNotFoundError:
        rich._IMPORT_CWD = ""


RENEW = {"rich": _note_directory}
