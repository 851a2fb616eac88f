"""System calls that Python's standard library lacks.

Rules: Linux on the two CPUs whose call numbers are listed; a call that fails raises `OSError`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache
from typing import Final

LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
"""The same on every CPU, like all recent calls."""
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38

MACHINES: Final = ("x86_64", "aarch64")


def numbers_are_known() -> bool:
    """Whether the call numbers of this system are known."""
    return sys.platform == "linux" and platform.machine() in MACHINES


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library


def system_call(number: int, *arguments: object) -> int:
    """Make a system call; the arguments are ctypes values."""
    result = int(_libc().syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, *values: int | ctypes.c_void_p) -> None:
    """Set a property of this process or thread."""
    words = [v if isinstance(v, ctypes.c_void_p) else ctypes.c_ulong(v) for v in values]
    words += [ctypes.c_ulong(0)] * (4 - len(words))
    if _libc().prctl(ctypes.c_int(option), *words) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
