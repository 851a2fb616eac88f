"""Charging guests' memory to the ledger.

Owns when the host measures a guest's memory, and how much a guest may grow between two
measurements. Rules: a program is charged before it is created. It is measured at each tick, before
each wait, and when the host finds that its memory has grown. Only a program that computes has a
share of the free memory; its limit is renewed whenever it resumes. Everything happens under the
sandbox's lock.

A program that began with an image shares it with others until it writes. It is charged for the
pages that it may have written: for those that it had when the host last looked at its pages, and
for each page fault of its threads since then. Only a thread itself can ask for its faults, so it
does before it waits and at each tick. The host looks at the pages when there is no room, or when
faults have made a program look much larger. A computing guest writes some megabytes between two
ticks, and so much may be in use beyond the limit.

Reading the size of a memory and of its exceptions takes less than a microsecond. Finding out which
pages of the stacks were touched takes 5 to 15, so the host does that at most every few
milliseconds. A program that waits again sooner goes on the list `Ledger.unseen`; the next look at
the stacks of any guest, or at the sandbox's usage, measures the programs on that list too.
"""

from __future__ import annotations

import mmap
from _thread import get_ident
from time import monotonic_ns
from typing import Final

from wasmsand.engine.abilities import MemoryControl
from wasmsand.engine.protocol import Engine, Instance, Module, NeedsMemory
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import PROCESS_BYTES, STACK_UNCHARGED_MAX
from wasmsand.kernel.process.memory import MemoryAccount
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.program import Program
from wasmsand.machine.module_source import ModuleSource

_FRESH_NS: Final = 4_000_000
"""How long a measurement of stacks is recent enough: a guest touches about 8 MB in that time."""
_KEPT_LOCALS: Final = 2
"""Copies charged per further thread: its own, and one for the first thread, which is charged
none while it is the only one."""
_PAGE: Final = mmap.PAGESIZE
_LOOSE_BYTES: Final = 1 << 20
"""How much of its image a program may have written since its pages were looked at, so that looking
again is worthwhile if there is no room."""
_LOOSE_PART: Final = 4
"""A program that may have written this part of its image is looked at in any case."""


def _c_stack(control: MemoryControl, instance: Instance, size: int) -> int:
    return min(control.stack_reserve(instance), STACK_UNCHARGED_MAX, size)


def make_program(
    kernel: Kernel,
    modules: ModuleSource,
    program: Program,
    module: Module,
    address_space: int,
    replaced: MemoryAccount | None = None,
) -> tuple[Instance, MemoryAccount]:
    """Create an instance of `program` with at most `address_space` bytes of memory, and its
    account. ENOMEM if the sandbox has no room for it, where the memory of `replaced` counts as
    free.

    Raises `ModuleRejected` as `Module.instantiate` does.
    """
    ledger = kernel.ledger
    freed = 0 if replaced is None else replaced.total
    # The initial memory is refused before the instance exists, everything else after.
    shared = modules.shared_bytes(program)
    most = min(max(0, ledger.room + freed) + STACK_UNCHARGED_MAX, ledger.limit) + shared
    try:
        instance = modules.instantiate(program, module, min(most, address_space))
    except (NeedsMemory, MemoryError) as error:
        raise KernelError(Errno.ENOMEM, str(error)) from error
    control = modules.engine.abilities.memory_control
    size = instance.memory_size()
    image = control.shared_bytes(instance)
    guest = size - _c_stack(control, instance, size) - image
    engine = PROCESS_BYTES + control.held_bytes(instance)
    try:
        ledger.require_program(guest + engine, freed)
    except KernelError:
        instance.close()
        raise
    return instance, MemoryAccount(ledger, guest, engine, image=image)


def adopt_program(kernel: Kernel, engine: Engine, instance: Instance) -> MemoryAccount:
    """The account of an instance that was copied from another sandbox. ENOMEM if this sandbox has
    no room for it."""
    control = engine.abilities.memory_control
    size = instance.memory_size()
    image = control.shared_bytes(instance)
    written = control.written_bytes(instance) if image else 0
    guest = size - _c_stack(control, instance, size) - image + written
    held = PROCESS_BYTES + control.held_bytes(instance)
    kernel.ledger.require_program(guest + held)
    return MemoryAccount(kernel.ledger, guest, held, image=image, written=written)


class Charge:
    """What one guest is charged: for its program, which its threads share, and for its thread."""

    __slots__ = (
        "_base",
        "_c_stack",
        "_control",
        "_deep",
        "_engine",
        "_faults",
        "_instance",
        "_ledger",
        "_limit",
        "_measured_on",
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
        """With `thread_locals` the guest is a further thread, whose thread-local variables (so many
        bytes) are stored while other threads run."""
        self.account = account
        self._ledger = kernel.ledger
        self._engine = engine
        self._instance = instance
        self._control = control = engine.abilities.memory_control
        self._size = instance.memory_size()
        self._c_stack = _c_stack(control, instance, self._size)
        self._base = PROCESS_BYTES + _KEPT_LOCALS * (thread_locals or 0)
        self._own = self._base + control.held_bytes(instance)
        """Bytes charged for this thread."""
        self._deep = 0
        """The part of `_own` that is its touched native stack."""
        self._seen = monotonic_ns()
        """When its stacks were last measured."""
        self._limit = -1
        self._measured_on: int | None = None
        """The host's thread that runs it; None before it runs."""
        self._faults = 0
        """The page faults of that thread when it asked last."""
        self.left = False
        """Whether the guest has ended."""
        if thread_locals is not None:
            account.user_came()
            account.add_engine(self._own)
        else:
            if self._own != account.engine:  # a forked copy has no exception objects
                account.add_engine(self._own - account.engine)
            if account.image:
                self._ledger.sharing.add(self)

    def begin(self) -> None:
        """The guest's own thread is about to run it."""
        if self.account.image:
            self._measured_on = get_ident()
            self._faults = self._control.page_faults()

    def account_of_copy(self) -> MemoryAccount:
        """Charge a copy of the program that is about to be made; ENOMEM if there is no room."""
        account = self.account
        engine = PROCESS_BYTES + self._held_bytes()
        self._ledger.require_program(account.guest + engine)
        return MemoryAccount(
            self._ledger, account.guest, engine, image=account.image, written=account.written
        )

    def require_thread(self, thread_locals: int) -> None:
        """EAGAIN if there is no room for another thread of the program."""
        needed = PROCESS_BYTES + self._held_bytes() + _KEPT_LOCALS * thread_locals
        self._ledger.require_program(needed, errno=Errno.EAGAIN)

    def _held_bytes(self) -> int:
        return self._control.held_bytes(self._instance)

    def measure(self) -> None:
        """Measure the guest's memory, including its stacks, and update the ledger."""
        self._seen = monotonic_ns()
        in_use = self._control.stacks_in_use(self._instance, self._c_stack)
        self.account.c_stack, self._deep = in_use
        self._enter()

    def _count_faults(self) -> None:
        """Charge the pages of the image that the guest's thread may have written. Does nothing on
        another thread, which has faults of its own."""
        account = self.account
        if account.image:
            if self._measured_on is None:
                account.may_have_written(account.image)
                return
            if self._measured_on != get_ident():
                return
            now = self._control.page_faults()
            account.may_have_written((now - self._faults) * _PAGE)
            self._faults = now
            if (account.written - account.seen_written) * _LOOSE_PART > account.image:
                account.has_written(self._control.written_bytes(self._instance))

    def look_at_pages(self) -> None:
        """Charge the pages of the image that the program has written, as they are now."""
        account = self.account
        if account.written - account.seen_written >= _LOOSE_BYTES:
            # Faults until now may be counted again by their thread: the charge is never too small.
            account.has_written(self._control.written_bytes(self._instance))
            self._enter()

    def enter_growth(self) -> bool:
        """Charge growth of the memory and of its exceptions, and what the thread may have written.
        True if the memory limit holds."""
        self._count_faults()
        return self._enter()

    def _enter(self) -> bool:
        account, instance = self.account, self._instance
        size = self._size = instance.memory_size()
        guest = size - self._c_stack + account.c_stack - account.unwritten
        if guest != account.guest:
            account.set_guest(guest)
        own = self._base + self._control.held_bytes(instance) + self._deep
        if own != self._own:
            account.add_engine(own - self._own)
            self._own = own
        return self._ledger.holds

    def look(self) -> bool:
        """Measure this guest and those on the list. True if the memory limit holds."""
        self._count_faults()
        self.measure()
        ledger = self._ledger
        if ledger.unseen:
            ledger.unseen.discard(self)
            return ledger.see()
        return ledger.holds

    def look_again(self) -> bool:
        """Like `look`, but postpone the stacks if they were measured a moment ago."""
        if monotonic_ns() - self._seen > _FRESH_NS:
            return self.look()
        self._ledger.unseen.add(self)
        return self.enter_growth()

    def show(self, process: Process) -> None:
        """Update the figures that ps and getrusage show."""
        total = self.account.total
        process.memory_bytes = total
        if total > process.usage.max_memory:
            process.usage.max_memory = total

    def wait(self) -> bool:
        """The guest is about to wait. True if the memory limit holds.

        Pipelines wait all the time. So a guest that was measured a moment ago and whose memory has
        not grown is only put on the list of guests to measure.
        """
        if monotonic_ns() - self._seen > _FRESH_NS:
            holds = self.look()
        else:
            ledger = self._ledger
            ledger.unseen.add(self)
            changed = self.account.image or self._instance.memory_size() != self._size
            holds = self.enter_growth() if changed else ledger.holds
        self.account.give_share()
        return holds

    def go_on(self, address_space: int) -> None:
        """The guest was measured and is about to compute: let it grow by its share."""
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
        """Other threads have run, and may have grown the memory."""
        self._size = self._instance.memory_size()

    def is_poor(self) -> bool:
        """Whether the guest's share is smaller than the free memory, because others compute."""
        return self.account.share < self._ledger.room

    def leave(self) -> None:
        """The guest has ended and its instance is about to be closed: stop measuring it."""
        if not self.left:
            self.left = True
            self.account.last_user_rests()
            self._ledger.unseen.discard(self)
            self._ledger.sharing.discard(self)

    def end(self) -> None:
        """The instance is closed. This is the only method that needs no lock."""
        self._ledger.freed.append(self)

    def take_out(self) -> None:
        """Remove the charge from the ledger. See `Freed`."""
        own, self._own = self._own, 0
        self.account.user_left(own)
