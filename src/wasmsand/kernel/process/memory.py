"""The memory of one program, as the ledger has it.

Owns `MemoryAccount`. A program is what an engine runs: one memory, and the threads in it. Rules:
it is in the ledger from before it is made until all of it is freed, whatever happens to the
process; it is `dying` when no living process is in it any more (after exec, exit or a kill).
Two processes are in one program between vfork and exec.
"""

from __future__ import annotations

from wasmsand.kernel.ledger import Ledger


class MemoryAccount:
    """What one program takes. Making this object enters it in the ledger."""

    __slots__ = (
        "_ledger",
        "_owners",
        "_users",
        "c_stack",
        "engine",
        "guest",
        "limit",
        "share",
    )

    def __init__(self, ledger: Ledger, guest: int, engine: int) -> None:
        """`guest` and `engine` as in `Ledger`."""
        self._ledger = ledger
        self._owners = 1
        self._users = 1
        self.guest = guest
        self.engine = engine
        self.c_stack = 0
        """How much of `guest` is C stack that was touched."""
        self.limit = -1
        """What the memory can grow to now."""
        self.share = 0
        """How many bytes the program may grow by until it is looked at."""
        ledger.change_programs(guest, engine, 0)

    @property
    def total(self) -> int:
        """All bytes."""
        return self.guest + self.engine

    def set_guest(self, now: int) -> None:
        """The memory takes `now` bytes."""
        more = now - self.guest
        self.guest = now
        self._ledger.change_programs(more, 0, 0 if self._owners else more)

    def add_engine(self, more: int) -> None:
        """The engine takes `more` bytes for the program (fewer, if negative)."""
        self.engine += more
        self._ledger.change_programs(0, more, 0 if self._owners else more)

    def take_share(self) -> int:
        """The program computes: how many bytes it may grow by."""
        self.share = self._ledger.share(self.share)
        return self.share

    def give_share(self) -> None:
        """The program waits, and so cannot grow."""
        self._ledger.shared -= self.share
        self.share = 0

    def owner_came(self) -> None:
        """Another process uses this program: a child of vfork."""
        self._owners += 1

    def owner_left(self) -> None:
        """A process has ended, or has executed another program."""
        self._owners -= 1
        if not self._owners:
            self._ledger.change_programs(0, 0, self.guest + self.engine)

    def user_came(self) -> None:
        """Another thread runs this program."""
        self._users += 1

    def last_user_rests(self) -> None:
        """A thread computes no more; if there is no other, the program cannot grow."""
        if self._users == 1:
            self.give_share()

    def user_left(self, engine: int = 0) -> None:
        """A thread has ended, and freed `engine` bytes of its own; with the last thread the
        memory is freed."""
        self._users -= 1
        if self._users:
            self.add_engine(-engine)
            return
        self.give_share()
        total = self.guest + self.engine
        dying = 0 if self._owners else total  # its process may never have been told
        self._owners = 0
        self._ledger.change_programs(-self.guest, -self.engine, -dying)
        self.guest = self.engine = 0
