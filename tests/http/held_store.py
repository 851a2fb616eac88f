"""`wasmsand` with a disk that can be stopped: `python -m tests.http.held_store serve ...`.

While the directory that WASMSAND_TEST_HELD names has a file `commit` or `delete`, such a call of
the store waits, after it has written a file with the same name and the suffix `.held`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wasmsand.http.store import ServerStore

_PLACE = Path(os.environ["WASMSAND_TEST_HELD"])


def _held(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def work(*values: Any) -> Any:
        if (_PLACE / name).exists():
            (_PLACE / f"{name}.held").touch()
            while (_PLACE / name).exists():
                time.sleep(0.01)
        return call(*values)

    return work


for each in ("commit", "delete"):
    setattr(ServerStore, each, _held(each, getattr(ServerStore, each)))

if __name__ == "__main__":
    from wasmsand.cli import main

    sys.exit(main())
