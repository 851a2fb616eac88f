"""What the handler of a Linux system call works on.

Owns `CallContext`; its rules are those of `ProcessContext`.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.context import ProcessContext
from wasmsand.abi.linux.structs import TIMESPEC, nanoseconds
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import O_PATH
from wasmsand.kernel.process.program import Program
from wasmsand.kernel.process.thread import Thread
from wasmsand.kernel.vfs import Node

RESTART: Final = -512
"""Tells the libc to run signal handlers and to make the call again (ERESTARTSYS)."""

AT_FDCWD_U32: Final = 0xFFFF_FF9C


class CallContext(ProcessContext):
    """The caller of a system call."""

    def directory(self, fd: int) -> Node:
        """The directory at which an `*at` call starts."""
        if fd == AT_FDCWD_U32:
            return self.process.cwd
        node = self.process.fds.get(fd).node
        if node is None:
            raise KernelError(Errno.ENOTDIR)
        return node

    def file(self, fd: int) -> OpenFile:
        """The open file behind an fd; EBADF if it was opened with O_PATH."""
        file = self.process.fds.get(fd)
        if file.flags & O_PATH:
            raise KernelError(Errno.EBADF, "opened with O_PATH")
        return file

    def file_or_path(self, fd: int) -> OpenFile:
        """The open file behind an fd, for the few calls that accept O_PATH fds."""
        return self.process.fds.get(fd)

    def timespec(self, address: int) -> int:
        """A timespec64 in nanoseconds; EINVAL if it is not a valid duration."""
        seconds, rest = self.memory.unpack(TIMESPEC, address)
        rest &= 0xFFFF_FFFF  # the upper half pads a 32-bit long
        if seconds < 0 or rest >= SECOND:
            raise KernelError(Errno.EINVAL)
        return nanoseconds(seconds, rest)

    def execute(self, program: Program) -> int:
        """Replace the caller's program. Returns only for an embryo: its pid."""
        raise NotImplementedError

    def begin_embryo(self) -> None:
        """vfork: until exec or exit, the caller's calls act on a new child."""
        raise NotImplementedError

    def store(self) -> int:
        """checkpoint: store the caller's memory and end it; ENOSYS if nobody stores programs."""
        raise NotImplementedError

    def start_thread(self, stack: int) -> Thread:
        """Start another thread of the caller's program with this stack pointer."""
        raise NotImplementedError

    def end_thread(self, status: int) -> int:
        """The calling thread exits. Returns only for an embryo: its pid."""
        raise NotImplementedError

    def yield_turn(self) -> None:
        """Let other threads of the program run first."""
        raise NotImplementedError

    def lower_signal_flag(self) -> None:
        """No handler is left to run: clear the signal flag."""
        raise NotImplementedError


def signed(value: int) -> int:
    """A 32-bit argument as a signed number."""
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def optional_id(value: int) -> int:
    """A user or group id; -1 (unchanged) if all bits are set."""
    return -1 if value == 0xFFFF_FFFF else value


def signed64(low: int, high: int) -> int:
    """Two 32-bit arguments as a signed 64-bit number."""
    value = high << 32 | low
    return value - (1 << 64) if value & (1 << 63) else value
