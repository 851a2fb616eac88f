"""Errno: the closed set of errors a guest can see, with Linux's numbers.

Owns `Errno` and `KernelError`. Rules: for a failed call the kernel raises `KernelError` and nothing
else. The numbers are Linux's, whatever the host is.
"""

from __future__ import annotations

from enum import IntEnum


class Errno(IntEnum):
    """Error numbers of Linux (asm-generic)."""

    EPERM = 1
    ENOENT = 2
    ESRCH = 3
    EINTR = 4
    EIO = 5
    ENXIO = 6
    E2BIG = 7
    ENOEXEC = 8
    EBADF = 9
    ECHILD = 10
    EAGAIN = 11
    ENOMEM = 12
    EACCES = 13
    EFAULT = 14
    ENOTBLK = 15
    EBUSY = 16
    EEXIST = 17
    EXDEV = 18
    ENODEV = 19
    ENOTDIR = 20
    EISDIR = 21
    EINVAL = 22
    ENFILE = 23
    EMFILE = 24
    ENOTTY = 25
    ETXTBSY = 26
    EFBIG = 27
    ENOSPC = 28
    ESPIPE = 29
    EROFS = 30
    EMLINK = 31
    EPIPE = 32
    EDOM = 33
    ERANGE = 34
    EDEADLK = 35
    ENAMETOOLONG = 36
    ENOLCK = 37
    ENOSYS = 38
    ENOTEMPTY = 39
    ELOOP = 40
    ENODATA = 61
    ETIME = 62
    EOVERFLOW = 75
    EILSEQ = 84
    ENOTSOCK = 88
    EDESTADDRREQ = 89
    EMSGSIZE = 90
    EPROTOTYPE = 91
    ENOPROTOOPT = 92
    EPROTONOSUPPORT = 93
    ESOCKTNOSUPPORT = 94
    EOPNOTSUPP = 95
    EPFNOSUPPORT = 96
    EAFNOSUPPORT = 97
    EADDRINUSE = 98
    EADDRNOTAVAIL = 99
    ENETDOWN = 100
    ENETUNREACH = 101
    ECONNABORTED = 103
    ECONNRESET = 104
    ENOBUFS = 105
    EISCONN = 106
    ENOTCONN = 107
    ETOOMANYREFS = 109
    ETIMEDOUT = 110
    ECONNREFUSED = 111
    EHOSTUNREACH = 113
    EALREADY = 114
    EINPROGRESS = 115
    ESTALE = 116
    ECANCELED = 125


class KernelError(Exception):
    """A system call failed. `detail` is for humans: a path, or the option to change."""

    def __init__(self, errno: Errno, detail: str = "") -> None:
        # The message is built on demand: most errors go to the guest as a number.
        super().__init__(errno, detail)
        self.errno = errno
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.errno.name}: {self.detail}" if self.detail else self.errno.name


class PathEscapes(KernelError):
    """A path that must stay beneath a directory led out of it. Its errno is EXDEV, as for openat2;
    a class of its own distinguishes it from a rename across file systems."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(Errno.EXDEV, detail)
