"""Guests in workers, served by one thread.

Owns `Loop`, which decides whose waiting call is tried again, and `Task`, the driver of one guest.
Rules: nothing here waits. A call is answered at once, or a queue or a deadline makes it ready
again. A guest that computes looks at its signal flag in its loops: if that is set, it calls `tick`.
A guest without a flag cannot be interrupted, only ended: its worker is terminated then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from wasmsand.abi.context import ProcessEnded
from wasmsand.engine.asyncify import copied_ranges, read_header
from wasmsand.engine.javascript.engine import instance_of
from wasmsand.engine.protocol import GuestTrap, TrapKind
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.deadlines import Deadlines
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.process.delivery import deliverable_handler, look_again
from wasmsand.kernel.process.signals import Signal
from wasmsand.kernel.process.timers import enforce_cpu_limit
from wasmsand.machine.bug_log import log_bug
from wasmsand.machine.dispatcher import Dispatcher
from wasmsand.machine.driver import Blocked
from wasmsand.machine.guest import Execute, Guest
from wasmsand.web.host import BLOCKED, HANDLE, LEAVE, WebHost
from wasmsand.web.turns import WebTurn
from wasmsand.web.words import Words

_TRAP_SIGNALS: Final = {
    TrapKind.ARITHMETIC: Signal.SIGFPE,
    TrapKind.UNREACHABLE: Signal.SIGILL,
    TrapKind.UNCAUGHT_EXCEPTION: Signal.SIGABRT,
}
_MILLISECOND: Final = 1_000_000
_TURN_NS: Final = 5 * _MILLISECOND
"""How long a thread keeps its turn while others want it, if it makes calls."""


class Loop:
    """The guests of one machine."""

    def __init__(self, host: WebHost, clock: Clock) -> None:
        self.host = host
        self._clock = clock
        self.tasks: dict[int, Task] = {}
        """By the host's number of the guest."""
        self._ready: deque[Callable[[], None]] = deque()
        self._later: list[Callable[[], None]] = []
        self._deadlines: Deadlines[Callable[[], None]] = Deadlines()
        self._look = False
        """Whether a process may have changed whose guest computes."""
        self._armed: int | None = None
        self.serves_guest = False
        """Whether the current step is a guest's call, which can wait."""

    def add(self, guest: Guest) -> None:
        """Run a guest."""
        Task(self, guest).run()

    def soon(self, act: Callable[[], None]) -> None:
        """Call `act` when the current step is done."""
        self._ready.append(act)

    def at(self, when: int, act: Callable[[], None]) -> None:
        """Call `act` at this monotonic time, once."""
        self._deadlines.set(act, when)

    def not_after(self, when: int, act: Callable[[], None]) -> None:
        """Call `act` at this time, or earlier if that was asked for before."""
        armed = self._deadlines.get(act)
        if armed is None or when < armed:
            self._deadlines.set(act, when)

    def later(self, act: Callable[[], None]) -> None:
        """Call `act` after the host has looked at everything else, such as a request to kill."""
        self._later.append(act)

    def not_at(self, act: Callable[[], None]) -> None:
        """Do not call it."""
        self._deadlines.cancel(act)

    def look_at_computing(self) -> None:
        """A hook of the kernel: something happened to a process whose guest may compute."""
        self._look = True

    def settle(self) -> None:
        """Do everything that is ready, and tell the host when to come again."""
        ready = self._ready
        while True:
            while ready:
                ready.popleft()()
            if self._look:
                self._look = False
                for task in tuple(self.tasks.values()):
                    task.look()
                continue
            if not self._deadlines:
                break
            act = self._deadlines.take_due(self._clock.monotonic())
            if act is None:
                break
            act()
        self._arm()

    def _arm(self) -> None:
        when = 0 if self._later else self._deadlines.earliest()
        if when != self._armed:
            self._armed = when
            if when is None:
                self.host.wake_at(-1)
            else:
                self.host.wake_at(max(0.0, (when - self._clock.monotonic()) / _MILLISECOND))

    def time_passed(self) -> None:
        """The host calls this when the time that it was told has come."""
        self._armed = None
        self._ready += self._later
        self._later.clear()
        self.settle()

    def tick(self) -> None:
        """The host calls this every now and then while guests compute."""
        self._look = True
        self.settle()


class Task:
    """One guest, and its `Driver`."""

    def __init__(self, loop: Loop, guest: Guest, turn: WebTurn | None = None) -> None:
        """With `turn`, the guest is a further thread of a program."""
        self.guest = guest
        self._turn = turn
        self._has_turn = turn is None
        self._turn_since = 0
        self._yields = False
        """Whether it gives other threads their turn before its call returns."""
        self._loop = loop
        self._host = loop.host
        self._clock = guest.kernel.clock
        self._dispatcher = Dispatcher(guest)
        self._dispatch = self._dispatcher.dispatch  # cached, because every call uses it
        self._words = Words()
        self._number = -1
        self._blocked: Blocked | None = None
        self._is_ready = False
        self._computing = True
        self._cpu_ns = 0
        self._since = self._clock.monotonic()
        """Since when it computes."""
        guest.driver = self

    # Driver.

    def cpu_time_ns(self) -> int:
        """How long the guest has computed, by the wall clock: the host does not know better."""
        if self._computing:
            return self._cpu_ns + self._clock.monotonic() - self._since
        return self._cpu_ns

    def start(self, guest: Guest) -> None:
        """Run another guest concurrently."""
        self._loop.add(guest)

    def start_thread(self, guest: Guest) -> None:
        """Run another thread of the guest's program; it waits for its turn."""
        if self._turn is None:
            self._turn = WebTurn(self._loop.soon)
            self._turn_since = self._clock.monotonic()
        Task(self._loop, guest, self._turn).run()

    def yield_turn(self) -> None:
        """Let other threads of the program run first, when the current call is done."""
        self._yields = True

    # The guest's life.

    def run(self) -> None:
        """Start the program in a worker; a further thread first waits for its turn."""
        self.guest.begin_account()
        if self._turn is None:
            self._start_program()
        else:
            self._computing = False
            self._turn.ask(partial(self._got_turn, self._dispatcher.begin))

    def _start_program(self) -> None:
        instance = instance_of(self.guest.instance)
        variables = "\n".join(f"{name}\t{value}" for name, value in instance.variables.items())
        buffer = -1 if instance.fork is None else instance.fork.buffer
        self._number = self._host.start_guest(
            self._number,
            instance.module.id,
            instance.memory,
            instance.entry,
            variables,
            buffer,
            -1 if instance.argument is None else instance.argument,
        )
        self._loop.tasks[self._number] = self
        self._resumed()

    def _resumed(self) -> None:
        self._computing = True
        self._since = self._clock.monotonic()

    def _paused(self) -> None:
        if self._computing:
            self._cpu_ns += self._clock.monotonic() - self._since
            self._computing = False

    def look(self) -> None:
        """Called every now and then: end the guest if its process has ended, and account for it."""
        if not self._computing:
            return  # its queue wakes it
        guest = self.guest
        try:
            guest.stop_if_over()
            guest.account()
            if not guest.charge.look():
                guest.out_of_memory()
            guest.show_memory()
            enforce_cpu_limit(guest.kernel, guest.process)
            look_again(guest.kernel, guest.thread)
            guest.stop_if_over()
            if guest.flag_address is not None and self._wants_tick():
                guest.set_signal_flag()  # the program looks at it in its loops
        except ProcessEnded:
            self._end(computing=True)
        except Exception:
            log_bug("host bug while %r was looked at; ending the process", guest.process)
            guest.finish(Signal.SIGKILL)
            self._end(computing=True)

    def _wants_tick(self) -> bool:
        """Whether the computing guest has to be stopped, told of a signal or make way."""
        thread = self.guest.thread
        if thread.stopped or deliverable_handler(thread):
            return True
        return self._turn is not None and self._turn.wanted

    def _execute(self, change: Execute) -> None:
        self._leave_threads()
        self.guest.close()
        self._dispatcher.load(change)
        self._start_program()

    def _end(self, *, computing: bool) -> None:
        guest = self.guest
        self._leave_threads()
        if not guest.charge.left:
            guest.leave_memory()
        if self._number >= 0:
            del self._loop.tasks[self._number]
            self._host.end_guest(self._number, computing)
        guest.close()
        self._dispatcher.forget()
        guest.forget()

    # Calls of the guest. Each returns an answer: the result, or one of the numbers in `host`.

    def call(self, nr: int, a: int, b: int, c: int, d: int, e: int, f: int) -> int:
        """A system call."""
        words = self._words
        words.a, words.b, words.c, words.d, words.e, words.f = a, b, c, d, e, f
        return self._step(partial(self._dispatch, nr, words))

    def invoke(self, function: int, *arguments: int) -> int:
        """A call of a function that the engine offers, by its number."""
        handler = instance_of(self.guest.instance).module.engine.functions[function].handler
        return self._step(partial(self._dispatcher.invoke, handler, arguments))

    def tick(self) -> int:
        """The guest saw its signal flag while it computed. 1 if it has to run signal handlers."""
        return self._step(self._tick)

    def _tick(self) -> int | Blocked:
        self.guest.lower_signal_flag()
        self._yields = self._turn is not None
        return self._dispatcher.tick()

    def fork_allowed(self) -> int:
        """Whether the guest may fork: 0, or a negative errno."""
        return self._step(self.guest.fork_allowed)

    def fork(self, buffer: int, stack_pointer: int) -> int:
        """The guest has saved its frames: create its child. Its pid, or a negative errno."""
        return self._step(partial(self._fork, buffer, stack_pointer))

    def _fork(self, buffer: int, stack_pointer: int) -> int:
        guest, instance = self.guest, instance_of(self.guest.instance)
        used_end, buffer_end = read_header(instance, buffer)
        ranges = copied_ranges(instance.memory_size(), stack_pointer, used_end, buffer_end)
        try:
            child = instance.copy_for_fork(stack_pointer, buffer, tuple(ranges))
        except MemoryError:
            guest.fork_failed()
            return -int(Errno.ENOMEM)
        return guest.fork_child(child)

    def returned(self) -> int:
        """The program has returned."""
        return self._step(self._finish_returned)

    def _finish_returned(self) -> int:
        self.guest.returned()
        raise ProcessEnded

    def trapped(self, kind: str, again: bool) -> int:
        """The program has trapped; `again`: in a signal handler that ran after a trap, or after it
        has returned."""
        return self._step(partial(self._trapped, TrapKind(kind), again))

    def _trapped(self, kind: TrapKind, again: bool) -> int:
        signo = _TRAP_SIGNALS.get(kind, Signal.SIGSEGV)
        if not again and self.guest.tell_of_fault(signo):
            return HANDLE
        self.guest.finish(signo)
        raise ProcessEnded

    def _step(self, act: Callable[[], int | Blocked]) -> int:
        self._paused()
        try:
            self._loop.serves_guest = True
            try:
                outcome = act()
            finally:
                self._loop.serves_guest = False
            if isinstance(outcome, Blocked):
                self._pass_turn()
                self._wait(outcome)
                return BLOCKED
            if self._turn is not None and self._must_share(outcome):
                return BLOCKED
        except ProcessEnded:
            self._end(computing=False)
            return LEAVE
        except Execute as change:
            self._execute(change)
            return LEAVE
        except GuestTrap:  # it lied about its Asyncify buffer
            self.guest.finish(Signal.SIGSEGV)
            self._end(computing=False)
            return LEAVE
        except Exception:
            log_bug("host bug in a system call of %r; ending the process", self.guest.process)
            self.guest.finish(Signal.SIGKILL)
            self._end(computing=False)
            return LEAVE
        self._resumed()
        return outcome

    # Waiting.

    def _wait(self, blocked: Blocked) -> None:
        self._blocked = blocked
        if blocked.gives_way:
            self._is_ready = True
            self._loop.later(self._try_again)
            return
        for queue in blocked.queues:
            queue.add(self._wake)
        if blocked.deadline is not None:
            self._loop.at(blocked.deadline, self._wake)

    def _wake(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            self._loop.soon(self._try_again)

    def _try_again(self) -> None:
        self._is_ready = False
        blocked, self._blocked = self._blocked, None
        assert blocked is not None, "only a waiting call is woken"
        for queue in blocked.queues:
            queue.remove(self._wake)
        if blocked.deadline is not None:
            self._loop.not_at(self._wake)
        self._go_on(self._retry)

    def _retry(self) -> int | Blocked:
        outcome = self._dispatcher.retry()
        return outcome if isinstance(outcome, Blocked) else self._dispatcher.go_on(outcome)

    def _go_on(self, act: Callable[[], int | Blocked]) -> None:
        """Finish a call of a guest that waits, or start a thread that does not run yet."""
        answer = self._step(act)
        if answer == BLOCKED:
            return
        if self._number >= 0:
            self._host.answer(self._number, answer)
        elif answer != LEAVE:
            self._start_program()

    # The turn.

    def _must_share(self, result: int) -> bool:
        """A call has its result. Whether the guest gets it later, because it is another thread's
        turn."""
        turn = self._turn
        assert turn is not None
        yields, self._yields = self._yields, False
        told = False
        if self._has_turn:
            tired = self._clock.monotonic() - self._turn_since > _TURN_NS
            must = turn.wanted and (yields or tired)
            if not must or self.guest.embryo_parent is not None:
                return False
            told = self.guest.told_by_call
            self.guest.charge.look_again()  # it is not measured while it waits for its turn
            self._pass_turn()
        turn.ask(partial(self._got_turn, partial(self._returning, result, told)))
        return True

    def _returning(self, result: int, told: bool) -> int | Blocked:
        """A finished call returns. `told`: it had told the guest of a signal."""
        if told:
            outcome = self._dispatcher.tell_again()
            if isinstance(outcome, Blocked):
                return outcome
        return result

    def _got_turn(self, resume: Callable[[], int | Blocked]) -> None:
        self._has_turn = True
        self._turn_since = self._clock.monotonic()
        self._go_on(partial(self._see_changes, resume))

    def _see_changes(self, resume: Callable[[], int | Blocked]) -> int | Blocked:
        self.guest.stop_if_over()
        self.guest.see_changes()
        return resume()

    def _pass_turn(self) -> None:
        if self._turn is not None and self._has_turn:
            self._has_turn = False
            self._turn.give()

    def _leave_threads(self) -> None:
        """The thread ends, or executes another program."""
        if self._turn is not None:
            self._pass_turn()
            self._turn = None
            self.guest.leave_threads()
