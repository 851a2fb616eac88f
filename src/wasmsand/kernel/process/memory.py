"""The memory of one program, as charged to the ledger.

Owns `MemoryAccount`. A program is what the engine runs: one memory and the threads in it. Rules: a
program is charged from before it is created until all of it is freed, whatever happens to its
process. It is `dying` when no living process uses it (after exec, exit or a kill). Between vfork
and exec, two processes use one program.
"""

from __future__ import annotations

from wasmsand.kernel.ledger import Ledger


class MemoryAccount:
    """What one program uses. Creating this object charges the ledger."""

    __slots__ = (
        "_ledger",
        "_owners",
        "_users",
        "c_stack",
        "engine",
        "guest",
        "image",
        "limit",
        "seen_written",
        "share",
        "written",
    )

    def __init__(
        self, ledger: Ledger, guest: int, engine: int, *, image: int = 0, written: int = 0
    ) -> None:
        """`guest` and `engine`: see `Ledger`. The memory began with an image of `image` bytes,
        which programs share; at most `written` of them were written."""
        self._ledger = ledger
        self._owners = 1
        self._users = 1
        self.guest = guest
        self.engine = engine
        self.c_stack = 0
        """The part of `guest` that is touched C stack."""
        self.image = image
        """Bytes of the memory that other programs share, except where one has written."""
        self.written = written
        """How many of them this program has written, at most: it has pages of its own there."""
        self.seen_written = written
        """The same, when the pages were last looked at."""
        self.limit = -1
        """The size to which the memory may grow now."""
        self.share = 0
        """Bytes by which the program may grow until it is measured again."""
        ledger.change_programs(guest, engine, 0)

    @property
    def total(self) -> int:
        """Total bytes."""
        return self.guest + self.engine

    @property
    def unwritten(self) -> int:
        """Bytes of the image that cost the program nothing."""
        return self.image - self.written

    def may_have_written(self, more: int) -> None:
        """The program may have written `more` bytes of its image since this was called last."""
        written = self.written + more
        self.written = written if written < self.image else self.image

    def has_written(self, now: int) -> None:
        """The pages were looked at: the program has written `now` bytes of its image."""
        self.written = self.seen_written = min(now, self.image)

    def set_guest(self, now: int) -> None:
        """The guest's memory now takes `now` bytes."""
        more = now - self.guest
        self.guest = now
        self._ledger.change_programs(more, 0, 0 if self._owners else more)

    def add_engine(self, more: int) -> None:
        """The engine uses `more` bytes more (or fewer, if negative) for the program."""
        self.engine += more
        self._ledger.change_programs(0, more, 0 if self._owners else more)

    def take_share(self) -> int:
        """The program computes. Returns the number of bytes by which it may grow."""
        self.share = self._ledger.share(self.share)
        return self.share

    def give_share(self) -> None:
        """The program waits and cannot grow."""
        self._ledger.shared -= self.share
        self.share = 0

    def owner_came(self) -> None:
        """Another process uses this program: a vfork child."""
        self._owners += 1

    def owner_left(self) -> None:
        """A process that used this program has ended, or has executed another program."""
        self._owners -= 1
        if not self._owners:
            self._ledger.change_programs(0, 0, self.guest + self.engine)

    def user_came(self) -> None:
        """Another thread runs this program."""
        self._users += 1

    def last_user_rests(self) -> None:
        """A thread stops computing. If it is the only one, the program cannot grow."""
        if self._users == 1:
            self.give_share()

    def user_left(self, engine: int = 0) -> None:
        """A thread has ended and freed `engine` bytes. When the last thread ends, the program's
        memory is freed."""
        self._users -= 1
        if self._users:
            self.add_engine(-engine)
            return
        self.give_share()
        total = self.guest + self.engine
        dying = 0 if self._owners else total  # the process may not have left yet
        self._owners = 0
        self._ledger.change_programs(-self.guest, -self.engine, -dying)
        self.guest = self.engine = 0
