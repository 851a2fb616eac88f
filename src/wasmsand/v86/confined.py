"""Gives up rights, then becomes Node: `python -m wasmsand.v86.confined SETTINGS`.

Owns the barriers around the emulator. Rules: this process and Node are the same process, so the
barriers apply to Node; Node gets an empty environment; it may read the machine's files and the
system's libraries, and write nothing.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final

from wasmsand.confinement import ParentGone, Policy, confine

_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_READABLE: Final = (
    "/proc/meminfo",
    "/proc/stat",
    "/proc/cpuinfo",
    "/proc/version_signature",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/etc/ssl/openssl.cnf",
)
_OTHER_DATA_BYTES: Final = 3 << 30
"""Node's own memory, compiled code of the guest, and copies of the saved state."""


def main() -> int:
    """Confine this process, then run Node in it."""
    settings = json.loads(sys.argv[1])
    node = settings["node"]
    policy = Policy(
        readable=(*settings["readable"], *_READABLE),
        executable=(node, *_LIBRARIES),
        parent=settings["parent"],
    )
    try:
        _limit_data(settings["memory_bytes"] + settings["disk_bytes"] + _OTHER_DATA_BYTES)
        confine(policy)
    except ParentGone:
        return 1
    os.execve(node, [node, *settings["arguments"]], {})


def _limit_data(most: int) -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


if __name__ == "__main__":
    sys.exit(main())
