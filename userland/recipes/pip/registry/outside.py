"""Whether packages can come from anywhere but the registry.

Rules: without a network and without settings of the user, nobody waits for a time-out.
"""

from __future__ import annotations

import os
import socket

_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE")
_FILES = ("/etc/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf")


def index_is_configured() -> bool:
    """Whether the user has set an index or a directory of packages, or there is a network."""
    return (
        any(os.environ.get(name) for name in _VARIABLES)
        or any(os.path.exists(os.path.expanduser(path)) for path in _FILES)
        or network_exists()
    )


def network_exists() -> bool:
    """Whether anything outside can be reached. Nothing is sent: the kernel looks for a route to an
    address that is reserved for documentation."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return False
    return True
