"""The environment of a confined process.

Rules: only variables that Python, OpenSSL and wasmsand need are passed on, so no secret of the
host's environment reaches a process that runs guests.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_PACKAGE_DIRECTORY: Final = Path(__file__).resolve().parents[2]
_VARIABLES: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TZ",
    "XDG_CACHE_HOME",
    "WASMSAND_CACHE",
    "WASMSAND_COMPILE",
    "WASMSAND_RENEWAL",
)
_PROXY_VARIABLES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""For a process that uses the proxy of the host's environment."""
_WINDOWS_VARIABLES: Final = (
    "APPDATA",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "WINDIR",
)
"""Windows needs these to find its libraries and the user's directories."""
_NEVER: Final = ("WASMSAND_TOKENS",)


def child_environment(*, proxy: bool = False, everything: bool = False) -> dict[str, str]:
    """The environment of a process that imports the same package. `everything`: it gets all but the
    server's tokens."""
    path = [str(_PACKAGE_DIRECTORY)]
    path += [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    names = _VARIABLES if os.name == "posix" else (*_VARIABLES, *_WINDOWS_VARIABLES)
    names = (*names, *_PROXY_VARIABLES) if proxy else names
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.upper() in names or (everything and name not in _NEVER)
    }
    return {**kept, "PYTHONPATH": os.pathsep.join(path)}
