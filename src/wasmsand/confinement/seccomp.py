"""Seccomp: denies system calls that a sandbox's process does not need and that help attackers.

Owns the list of calls and the filter. Rules: the list contains denied calls, not allowed ones,
because Python, libc and wasmtime may need new ones. A denied call fails with EPERM. All calls of
other ABIs of the CPU are denied, because their numbers mean something else. See seccomp(2); the
filter is a classic BPF program.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from typing import Final, NamedTuple

from wasmsand.confinement.system_calls import PR_SET_SECCOMP, numbers_are_known, prctl


class _Numbers(NamedTuple):
    x86_64: int | None
    aarch64: int | None


DENIED: Final = {
    # The network, because landlock covers only TCP. `socketpair` stays allowed. A process with a
    # network may open and connect sockets of `NETWORK_FAMILIES` and `NETWORK_TYPES`.
    "socket": _Numbers(41, 198),
    "connect": _Numbers(42, 203),
    "bind": _Numbers(49, 200),
    "listen": _Numbers(50, 201),
    # Other processes.
    "ptrace": _Numbers(101, 117),
    "process_vm_readv": _Numbers(310, 270),
    "process_vm_writev": _Numbers(311, 271),
    "kcmp": _Numbers(312, 272),
    "pidfd_getfd": _Numbers(438, 438),
    # The system's configuration.
    "mount": _Numbers(165, 40),
    "umount2": _Numbers(166, 39),
    "pivot_root": _Numbers(155, 41),
    "chroot": _Numbers(161, 51),
    "open_tree": _Numbers(428, 428),
    "move_mount": _Numbers(429, 429),
    "fsopen": _Numbers(430, 430),
    "mount_setattr": _Numbers(442, 442),
    "swapon": _Numbers(167, 224),
    "swapoff": _Numbers(168, 225),
    "reboot": _Numbers(169, 142),
    "sethostname": _Numbers(170, 161),
    "setdomainname": _Numbers(171, 162),
    "acct": _Numbers(163, 89),
    "quotactl": _Numbers(179, 60),
    "init_module": _Numbers(175, 105),
    "delete_module": _Numbers(176, 106),
    "finit_module": _Numbers(313, 273),
    "kexec_load": _Numbers(246, 104),
    "kexec_file_load": _Numbers(320, 294),
    "settimeofday": _Numbers(164, 170),
    "clock_settime": _Numbers(227, 112),
    "adjtimex": _Numbers(159, 171),
    "iopl": _Numbers(172, None),
    "ioperm": _Numbers(173, None),
    "syslog": _Numbers(103, 116),
    # Namespaces, which give access to more of the kernel. See also `clone` below.
    "unshare": _Numbers(272, 97),
    "setns": _Numbers(308, 268),
    # Parts of the kernel with many past vulnerabilities.
    "bpf": _Numbers(321, 280),
    "perf_event_open": _Numbers(298, 241),
    "userfaultfd": _Numbers(323, 282),
    "io_uring_setup": _Numbers(425, 425),
    "io_uring_enter": _Numbers(426, 426),
    "io_uring_register": _Numbers(427, 427),
    "add_key": _Numbers(248, 217),
    "request_key": _Numbers(249, 218),
    "keyctl": _Numbers(250, 219),
    "name_to_handle_at": _Numbers(303, 264),
    "open_by_handle_at": _Numbers(304, 265),
    "personality": _Numbers(135, 92),
    "vhangup": _Numbers(153, 58),
    "modify_ldt": _Numbers(154, None),
}
"""Call numbers by CPU; None where the call does not exist."""

NETWORK_FAMILIES: Final = (2, 10)
"""AF_INET, AF_INET6."""
NETWORK_TYPES: Final = (1, 2)
"""SOCK_STREAM, SOCK_DGRAM (for look-ups)."""
_TYPE_MASK: Final = 0xF
_CLONE: Final = _Numbers(56, 220)
_CLONE3: Final = 435
"""Fails with ENOSYS, because its flags are in memory, which a filter cannot read; libc falls back
to `clone`."""
_NAMESPACE_FLAGS: Final = 0x7E02_0080
_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECOND_ABI_BIT: Final = 0x4000_0000
"""Set in call numbers of the x32 ABI, whose architecture value is that of x86_64."""
_MODE_FILTER: Final = 2
_ALLOW, _DENY, _MISSING = 0x7FFF_0000, 0x0005_0000 | errno.EPERM, 0x0005_0000 | errno.ENOSYS
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_MASK: Final = 0x54
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT = 0, 4, 16, 24


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _socket_steps(number: int) -> list[bytes]:
    """Allow `socket` for TCP and UDP, and deny it for everything else."""
    (first, second), (stream, datagram) = NETWORK_FAMILIES, NETWORK_TYPES
    return [
        _instruction(_EQUAL, number, 0, 9),
        _instruction(_LOAD, _FIRST_ARGUMENT_AT),
        _instruction(_EQUAL, first, 1, 0),
        _instruction(_EQUAL, second, 0, 5),
        _instruction(_LOAD, _SECOND_ARGUMENT_AT),
        _instruction(_MASK, _TYPE_MASK),
        _instruction(_EQUAL, stream, 1, 0),
        _instruction(_EQUAL, datagram, 0, 1),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _DENY),
    ]


def filter_program(machine: str, *, network: bool = False) -> bytes:
    """The filter: one comparison for each denied call. `network` allows outgoing connections."""
    column = _Numbers._fields.index(machine)
    denied = {name: row[column] for name, row in DENIED.items() if row[column] is not None}
    socket_number = denied["socket"]
    assert socket_number is not None
    if network:
        del denied["socket"], denied["connect"]
    numbers = list(denied.values())
    steps = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _instruction(_RETURN, _DENY),
        _instruction(_LOAD, _NUMBER_AT),
        _instruction(_AT_LEAST, _SECOND_ABI_BIT, 0, 1),
        _instruction(_RETURN, _DENY),
        _instruction(_EQUAL, _CLONE3, 0, 1),
        _instruction(_RETURN, _MISSING),
        _instruction(_EQUAL, _CLONE[column] or 0, 0, 4),
        _instruction(_LOAD, _FIRST_ARGUMENT_AT),
        _instruction(_ANY_BIT, _NAMESPACE_FLAGS, 0, 1),
        _instruction(_RETURN, _DENY),
        _instruction(_RETURN, _ALLOW),
        *(_socket_steps(socket_number) if network else ()),
    ]
    for index, number in enumerate(numbers):
        assert number is not None
        steps.append(_instruction(_EQUAL, number, len(numbers) - index, 0))
    return b"".join([*steps, _instruction(_RETURN, _ALLOW), _instruction(_RETURN, _DENY)])


def restrict(*, network: bool = False) -> bool:
    """Permanently deny the calls to this thread and its children. Returns whether the system
    supports it. Needs "no new privileges". `network` allows outgoing connections."""
    if not numbers_are_known():
        return False
    code = filter_program(platform.machine(), network=network)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    try:
        prctl(PR_SET_SECCOMP, _MODE_FILTER, ctypes.cast(ctypes.byref(program), ctypes.c_void_p))
    except OSError as error:
        if error.errno == errno.EINVAL:  # the host's kernel was built without seccomp filters
            return False
        raise
    return True
