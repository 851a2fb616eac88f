"""Guests' memory in the ledger.

Owns when the host looks at what a guest takes, and by how much a guest may grow in between.
Rules: a program is entered before it is made; it is looked at whenever it ticks, waits, or the
host finds its memory grown; only a program that computes has a share of the room, and its limit
is renewed whenever it goes on. All of it happens under the sandbox's lock.

To ask for the size of a memory and of its exceptions takes under a microsecond. To ask which
pages of its stacks were touched takes 5 to 15, so that is done once in some milliseconds; a
program that waits again before that is put on a list, and whoever looks next, at itself or at
the sandbox's use, looks at those on it too.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import Final

from wasmsand.engine.abilities import MemoryControl
from wasmsand.engine.protocol import Engine, Instance, Module, NeedsMemory
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import PROCESS_BYTES, STACK_UNCHARGED_MAX
from wasmsand.kernel.process.memory import MemoryAccount
from wasmsand.kernel.process.process import Process
from wasmsand.machine.module_source import ModuleSource

_FRESH_NS: Final = 4_000_000
"""How long the last look at stacks is good enough for: a guest touches some 8 MB in that time."""
_KEPT_LOCALS: Final = 2
"""Of the thread, and of the first one, which kept none as long as it was alone."""
_POOR_PART: Final = 8


def _c_stack(control: MemoryControl, instance: Instance, size: int) -> int:
    return min(control.stack_reserve(instance), STACK_UNCHARGED_MAX, size)


def make_program(
    kernel: Kernel,
    modules: ModuleSource,
    module: Module,
    address_space: int,
    replaced: MemoryAccount | None = None,
) -> tuple[Instance, MemoryAccount]:
    """An instance of `module`, whose memory is at most `address_space` bytes, and its account,
    if there is room beside all that there is but `replaced`; else ENOMEM.

    Raises `ModuleRejected` as `Module.instantiate`.
    """
    ledger = kernel.ledger
    freed = 0 if replaced is None else replaced.total
    # What it needs at once is refused before it is made, the rest after.
    most = max(0, ledger.room + freed) + STACK_UNCHARGED_MAX
    try:
        instance = modules.instantiate(module, min(most, ledger.limit, address_space))
    except (NeedsMemory, MemoryError) as error:
        raise KernelError(Errno.ENOMEM, str(error)) from error
    control = modules.engine.abilities.memory_control
    size = instance.memory_size()
    guest = size - _c_stack(control, instance, size)
    engine = PROCESS_BYTES + control.held_bytes(instance)
    try:
        ledger.require_program(guest + engine, freed)
    except KernelError:
        instance.close()
        raise
    return instance, MemoryAccount(ledger, guest, engine)


class Charge:
    """The entries of one guest: of its program, which threads share, and of its own thread."""

    __slots__ = (
        "_base",
        "_c_stack",
        "_control",
        "_deep",
        "_engine",
        "_instance",
        "_ledger",
        "_limit",
        "_own",
        "_seen",
        "_size",
        "account",
        "left",
    )

    def __init__(
        self,
        kernel: Kernel,
        engine: Engine,
        instance: Instance,
        account: MemoryAccount,
        *,
        thread_locals: int | None = None,
    ) -> None:
        """With `thread_locals` it is a further thread, for which so many bytes of them are kept
        while others run."""
        self.account = account
        self._ledger = kernel.ledger
        self._engine = engine
        self._instance = instance
        self._control = control = engine.abilities.memory_control
        self._size = instance.memory_size()
        self._c_stack = _c_stack(control, instance, self._size)
        self._base = PROCESS_BYTES + _KEPT_LOCALS * (thread_locals or 0)
        self._own = self._base + control.held_bytes(instance)
        """What is entered for this thread."""
        self._deep = 0
        """How much of that is its deep stack."""
        self._seen = monotonic_ns()
        """When its stacks were last looked at."""
        self._limit = -1
        self.left = False
        """Whether the guest has ended."""
        if thread_locals is not None:
            account.user_came()
            account.add_engine(self._own)
        elif self._own != account.engine:  # a copy has no exceptions
            account.add_engine(self._own - account.engine)

    def account_of_copy(self) -> MemoryAccount:
        """An account for a copy of the program that is about to be made; or ENOMEM."""
        guest, engine = self.account.guest, PROCESS_BYTES + self._held_bytes()
        self._ledger.require_program(guest + engine)
        return MemoryAccount(self._ledger, guest, engine)

    def require_thread(self, thread_locals: int) -> None:
        """EAGAIN unless there is room for another thread of the program."""
        needed = PROCESS_BYTES + self._held_bytes() + _KEPT_LOCALS * thread_locals
        self._ledger.require_program(needed, errno=Errno.EAGAIN)

    def _held_bytes(self) -> int:
        return self._control.held_bytes(self._instance)

    def measure(self) -> None:
        """Enter all that the guest takes."""
        self._seen = monotonic_ns()
        in_use = self._control.stacks_in_use(self._instance, self._c_stack)
        self.account.c_stack, self._deep = in_use
        self.enter_growth()

    def enter_growth(self) -> bool:
        """Enter what the memory and its exceptions take; whether the limit holds."""
        account, instance = self.account, self._instance
        size = self._size = instance.memory_size()
        guest = size - self._c_stack + account.c_stack
        if guest != account.guest:
            account.set_guest(guest)
        own = self._base + self._control.held_bytes(instance) + self._deep
        if own != self._own:
            account.add_engine(own - self._own)
            self._own = own
        return self._ledger.holds

    def look(self) -> bool:
        """Enter all that the guest takes; whether the limit holds."""
        self.measure()
        ledger = self._ledger
        if ledger.unseen:
            ledger.unseen.discard(self)
            return ledger.see()
        return ledger.holds

    def look_again(self) -> bool:
        """The same, but for the stacks if they were looked at a moment ago: somebody will."""
        if monotonic_ns() - self._seen > _FRESH_NS:
            return self.look()
        self._ledger.unseen.add(self)
        return self.enter_growth()

    def show(self, process: Process) -> None:
        """Let ps and getrusage tell it."""
        total = self.account.total
        process.memory_bytes = total
        if total > process.usage.max_memory:
            process.usage.max_memory = total

    def wait(self) -> bool:
        """The guest is about to wait; whether the limit holds.

        A pipeline waits all the time. So a guest whose memory has not grown, and that was looked
        at a moment ago, is only put on the list of those to look at.
        """
        if monotonic_ns() - self._seen > _FRESH_NS:
            holds = self.look()
        else:
            ledger = self._ledger
            ledger.unseen.add(self)
            grown = self._instance.memory_size() != self._size
            holds = self.enter_growth() if grown else ledger.holds
        self.account.give_share()
        return holds

    def go_on(self, address_space: int) -> None:
        """The guest, just looked at, is about to compute: let it grow by its share."""
        account, size = self.account, self._size
        limit = size + account.take_share()
        if limit > address_space:
            limit = max(size, address_space)
        # Another thread of the program may have changed the memory's limit.
        if limit != self._limit or limit != account.limit:
            self._limit = account.limit = limit
            self._control.limit_memory(self._instance, limit)
        self._engine.guest_resumed()

    def catch_up(self) -> None:
        """Other threads have run, and the memory may have grown."""
        self._size = self._instance.memory_size()

    def is_poor(self) -> bool:
        """Whether it may grow by much less than there is room for, since others compute too."""
        ledger = self._ledger
        return self.account.share < min(ledger.room, ledger.limit // _POOR_PART)

    def leave(self) -> None:
        """The guest has ended, and its instance is about to be closed: nobody looks any more."""
        if not self.left:
            self.left = True
            self.account.last_user_rests()
            self._ledger.unseen.discard(self)

    def end(self) -> None:
        """The instance is closed. The one method that needs no lock."""
        self._ledger.freed.append(self)

    def take_out(self) -> None:
        """See `Freed`."""
        own, self._own = self._own, 0
        self.account.user_left(own)
