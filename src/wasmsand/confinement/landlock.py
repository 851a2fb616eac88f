"""Landlock: which files, ports and processes this thread and its children may use.

Owns the rules of one domain. Rules: every right that the host's kernel can deny is denied, except
the listed ones; missing paths are ignored; with an older version of landlock, fewer rights are
denied, and none without landlock. See landlock(7); the numbers are those of its ABI.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from wasmsand.confinement.system_calls import (
    LANDLOCK_ADD_RULE,
    LANDLOCK_CREATE_RULESET,
    LANDLOCK_RESTRICT_SELF,
    numbers_are_known,
    system_call,
)

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
_FILE_RIGHTS: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
"""Rights that a rule for a file, not a directory, can have."""
_ALL_FILE_RIGHTS_BY_VERSION: Final = {1: 1 << 13, 2: 1 << 14, 3: 1 << 15, 5: 1 << 16}
"""For each version, the first bit above the rights that it supports."""
_TCP_RIGHTS: Final = 0b11
"""Bind and connect; since version 4."""
_BIND_RIGHT: Final = 0b01
_SCOPES: Final = 0b11
"""Abstract sockets of other processes, and signals to them; since version 6."""
_RULE_PATH_BENEATH: Final = 1
_VERSION_FLAG: Final = 1


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def version() -> int:
    """The version of landlock in the host's kernel; 0 if it is missing or disabled."""
    if not numbers_are_known():
        return 0
    try:
        return system_call(
            LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)
        )
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[str, int]], *, network: bool = False) -> tuple[str, ...]:
    """Permanently deny all rights except these on these paths and everything below them. Returns
    what is denied. Needs "no new privileges". `network` allows outgoing connections."""
    found = version()
    if not found:
        return ()
    handled = max(bits for since, bits in _ALL_FILE_RIGHTS_BY_VERSION.items() if since <= found) - 1
    tcp = _BIND_RIGHT if network else _TCP_RIGHTS
    attributes = _RulesetAttributes(handled, tcp if found >= 4 else 0, _SCOPES if found >= 6 else 0)
    # The kernel refuses a structure with fields that it does not know, so pass fewer fields.
    size = 24 if found >= 6 else 16 if found >= 4 else 8
    ruleset = system_call(
        LANDLOCK_CREATE_RULESET,
        ctypes.byref(attributes),
        ctypes.c_size_t(size),
        ctypes.c_uint32(0),
    )
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        system_call(LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    names = ["files"]
    names += [] if found < 4 else ["TCP servers"] if network else ["TCP"]
    names += ["signals"] if found >= 6 else []
    return tuple(names)


def _allow(ruleset: int, path: str, rights: int) -> None:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(place).st_mode):
                rights &= _FILE_RIGHTS
            rule = _PathBeneath(rights, place)
            system_call(
                LANDLOCK_ADD_RULE,
                ctypes.c_int(ruleset),
                ctypes.c_int(_RULE_PATH_BENEATH),
                ctypes.byref(rule),
                ctypes.c_uint32(0),
            )
        finally:
            os.close(place)
