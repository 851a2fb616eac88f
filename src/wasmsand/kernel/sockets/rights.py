"""Descriptors on their way from one process to another (SCM_RIGHTS).

Owns `Rights` and `RightsAccount`. Rules: while on their way descriptions count a reference,
so that they stay open when the sender closes them; a sandbox has a bounded number on their
way, because a socket sent through itself is never freed.
"""

from __future__ import annotations

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.limits import RIGHTS_IN_FLIGHT_MAX


class RightsAccount:
    """How many descriptors of a sandbox are on their way."""

    __slots__ = ("in_flight",)

    def __init__(self) -> None:
        self.in_flight = 0


class Rights:
    """The descriptors that go with one message."""

    __slots__ = ("_account", "files")

    def __init__(self, account: RightsAccount, files: list[OpenFile]) -> None:
        if account.in_flight + len(files) > RIGHTS_IN_FLIGHT_MAX:
            raise KernelError(Errno.ETOOMANYREFS)
        account.in_flight += len(files)
        self._account = account
        self.files = files
        for file in files:
            file.references += 1

    def drop(self) -> None:
        """They have arrived (and been given fds), or never will."""
        files, self.files = self.files, []
        self._account.in_flight -= len(files)
        for file in files:
            file.forget()
