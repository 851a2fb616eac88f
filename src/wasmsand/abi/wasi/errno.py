"""Error numbers of preview 1, and their mapping from kernel errors.

Owns `WasiErrno`, and the only place that converts a `KernelError` to a number. Rules: every `Errno`
has a number here (a test checks it); an errno without a counterpart in preview 1 is mapped to the
nearest one.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError, PathEscapes

WasiErrno = IntEnum(
    "WasiErrno",
    "SUCCESS E2BIG ACCES ADDRINUSE ADDRNOTAVAIL AFNOSUPPORT AGAIN ALREADY BADF BADMSG BUSY "
    "CANCELED CHILD CONNABORTED CONNREFUSED CONNRESET DEADLK DESTADDRREQ DOM DQUOT EXIST FAULT "
    "FBIG HOSTUNREACH IDRM ILSEQ INPROGRESS INTR INVAL IO ISCONN ISDIR LOOP MFILE MLINK MSGSIZE "
    "MULTIHOP NAMETOOLONG NETDOWN NETRESET NETUNREACH NFILE NOBUFS NODEV NOENT NOEXEC NOLCK "
    "NOLINK NOMEM NOMSG NOPROTOOPT NOSPC NOSYS NOTCONN NOTDIR NOTEMPTY NOTRECOVERABLE NOTSOCK "
    "NOTSUP NOTTY NXIO OVERFLOW OWNERDEAD PERM PIPE PROTO PROTONOSUPPORT PROTOTYPE RANGE ROFS "
    "SPIPE SRCH STALE TIMEDOUT TXTBSY XDEV NOTCAPABLE",
    start=0,
)
"""In the order of the specification, which numbers them from 0."""


class NotCapable(KernelError):
    """The descriptor lacks a right that the call needs (ENOTCAPABLE, which Linux does not
    have)."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(Errno.EPERM, detail)


_NAMED_DIFFERENTLY: Final = {
    Errno.E2BIG: WasiErrno["E2BIG"],
    Errno.ENOTBLK: WasiErrno["NOTSUP"],
    Errno.ENODATA: WasiErrno["NOMSG"],
    Errno.ETIME: WasiErrno["TIMEDOUT"],
    Errno.ESOCKTNOSUPPORT: WasiErrno["NOTSUP"],
    Errno.EOPNOTSUPP: WasiErrno["NOTSUP"],
    Errno.EPFNOSUPPORT: WasiErrno["AFNOSUPPORT"],
    Errno.ETOOMANYREFS: WasiErrno["NOBUFS"],
}

NUMBERS: Final[dict[Errno, int]] = {
    errno: int(_NAMED_DIFFERENTLY.get(errno) or WasiErrno[errno.name[1:]]) for errno in Errno
}
_NOTCAPABLE: Final = int(WasiErrno["NOTCAPABLE"])


def error_number(error: KernelError) -> int:
    """The result of a preview 1 function for a failed call."""
    if isinstance(error, NotCapable | PathEscapes):
        return _NOTCAPABLE
    return NUMBERS[error.errno]
