"""Descriptors in messages between processes (SCM_RIGHTS).

Owns `Rights` and `RightsAccount`. Rules: a message holds a reference to each description it
carries, so these stay open when the sender closes them. The number of descriptors in messages is
bounded per sandbox. Sockets that are kept open only by messages to each other are found and closed,
as on Linux (`collect`). A chain of sockets, each in a message to the next, is closed without
recursion.
"""

from __future__ import annotations

from collections import Counter

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import RIGHT_COST, RIGHTS_IN_FLIGHT_MAX


class RightsAccount:
    """The descriptors of a sandbox that are in unreceived messages."""

    __slots__ = ("_closing", "_is_closing", "_rights", "in_flight", "ledger")

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.in_flight = 0
        self._rights: dict[Rights, None] = {}
        self._closing: list[OpenFile] = []
        self._is_closing = False

    def add(self, rights: Rights) -> None:
        """Count a message with descriptors before it is sent. ETOOMANYREFS, ENOBUFS."""
        count = len(rights.files)
        if self.in_flight + count > RIGHTS_IN_FLIGHT_MAX:
            self.collect()
            if self.in_flight + count > RIGHTS_IN_FLIGHT_MAX:
                raise KernelError(Errno.ETOOMANYREFS)
        self.ledger.add_object(count * RIGHT_COST, Errno.ENOBUFS)
        self.in_flight += count
        self._rights[rights] = None

    def remove(self, rights: Rights, files: list[OpenFile]) -> None:
        """The message was received or dropped: release its references to `files`."""
        if self._rights.pop(rights, 0) is not None:
            return
        self.in_flight -= len(files)
        self.ledger.drop_object(len(files) * RIGHT_COST)
        # Closing a socket drops the messages sent to it, which calls this method again.
        self._closing += files
        if not self._is_closing:
            self._is_closing = True
            try:
                while self._closing:
                    self._closing.pop().forget()
            finally:
                self._is_closing = False

    def collect(self) -> None:
        """Drop messages that nobody can receive, because the sockets they were sent to are only
        kept open by such messages."""
        sent_to: dict[OpenFile, list[Rights]] = {}
        count: Counter[OpenFile] = Counter()
        reached: set[OpenFile] = set()
        for rights in self._rights:
            count.update(rights.files)
            if rights.holder is None:
                reached.update(rights.files)
            else:
                sent_to.setdefault(rights.holder, []).append(rights)
        kept = {file for keeper in count for file in keeper.kept_open()}
        for file in {*count, *sent_to}:
            # A file without references is a connection waiting to be accepted. If its listener is
            # not in a message, the listener has an fd.
            if file.references > count[file] or (not file.references and file not in kept):
                reached.add(file)
        ways = list(reached)
        while ways:
            found = ways.pop()
            nexts = [file for rights in sent_to.pop(found, ()) for file in rights.files]
            for file in (*nexts, *found.kept_open()):
                if file not in reached:
                    reached.add(file)
                    ways.append(file)
        for lost in sent_to.values():
            for rights in lost:
                rights.drop()


class Rights:
    """The descriptors sent with one message."""

    __slots__ = ("_account", "files", "holder")

    def __init__(self, account: RightsAccount, files: list[OpenFile]) -> None:
        self.files = files
        self.holder: OpenFile | None = None
        """The socket to which the message was sent."""
        account.add(self)
        self._account = account
        for file in files:
            file.references += 1

    def drop(self) -> None:
        """The descriptors were received and have fds, or the message was dropped."""
        files, self.files = self.files, []
        self._account.remove(self, files)
