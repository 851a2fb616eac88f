"""User and group identities of a process.

Owns `Identity`: real, effective and saved ids, and the changes that Linux allows. Rules: immutable;
a change returns a new object or raises EPERM.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs import Credentials

_Ids = tuple[int, int, int]
"""The real, effective and saved id."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The user and group ids of a process."""

    uid: int
    euid: int
    suid: int
    gid: int
    egid: int
    sgid: int
    groups: frozenset[int] = frozenset()
    _credentials: Credentials = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Created once, because almost every path system call needs it.
        effective = Credentials(self.euid, self.egid, self.groups)
        object.__setattr__(self, "_credentials", effective)

    @classmethod
    def of(cls, uid: int, gid: int, groups: frozenset[int] = frozenset()) -> Identity:
        """An identity with equal real, effective and saved ids."""
        return cls(uid, uid, uid, gid, gid, gid, groups)

    def credentials(self) -> Credentials:
        """The credentials for file permission checks."""
        return self._credentials

    def real_credentials(self) -> Credentials:
        """The credentials for access(2)."""
        return Credentials(self.uid, self.gid, self.groups)

    def after_exec(self, uid: int | None, gid: int | None) -> Identity:
        """The identity after execve of a program whose set-id bits give it `uid` and `gid`."""
        euid = self.euid if uid is None else uid
        egid = self.egid if gid is None else gid
        if (euid, egid) == (self.euid, self.egid) == (self.suid, self.sgid):
            return self
        return replace(self, euid=euid, suid=euid, egid=egid, sgid=egid)

    def with_uids(self, real: int, effective: int, saved: int) -> Identity:
        """setresuid; -1 leaves an id as it is."""
        old = (self.uid, self.euid, self.suid)
        uid, euid, suid = self._changed(old, (real, effective, saved))
        return replace(self, uid=uid, euid=euid, suid=suid)

    def with_gids(self, real: int, effective: int, saved: int) -> Identity:
        """setresgid; -1 leaves an id as it is."""
        old = (self.gid, self.egid, self.sgid)
        gid, egid, sgid = self._changed(old, (real, effective, saved))
        return replace(self, gid=gid, egid=egid, sgid=sgid)

    def _changed(self, old: _Ids, wanted: _Ids) -> _Ids:
        """The ids after a change. Only root may set an id to one that it does not have already."""
        if self.euid != 0 and any(new >= 0 and new not in old for new in wanted):
            raise KernelError(Errno.EPERM)
        real, effective, saved = [
            was if new < 0 else new for was, new in zip(old, wanted, strict=True)
        ]
        return real, effective, saved
