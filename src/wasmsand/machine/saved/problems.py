"""Why a saved machine is refused.

Rules: every defect of a file is a `StateRejected`, whatever its bytes are. A message shows at most
a few characters of the file.
"""

from __future__ import annotations


class StateRejected(Exception):
    """The data is not a saved machine, or it is damaged."""


class NewerVersion(StateRejected):
    """A newer version of wasmsand has saved the machine."""


class OtherImage(StateRejected):
    """The machine needs another image or other programs than this host has."""


class TooLarge(StateRejected):
    """The machine does not fit into the limits that it is loaded with."""
