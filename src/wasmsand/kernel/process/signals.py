"""Signals of one process: actions, mask, pending set.

Owns `Signal`, `SignalAction` and `SignalState`. Rules: standard signals do not queue: at most one
of each is pending, with its first siginfo, as on Linux. Real-time signals are treated the same way.
SIGKILL and SIGSTOP cannot be caught, blocked or ignored. A program may keep its actions and its
mask itself (`SharedSignals`, decision 0029): they are then read whenever they are needed. The
effects of signals are in `delivery.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, NamedTuple, Protocol

from wasmsand.kernel.errno import Errno, KernelError

SIGNAL_MAX: Final = 64
SIG_DFL: Final = 0
SIG_IGN: Final = 1
SA_NOCLDSTOP: Final = 0x1
SA_NOCLDWAIT: Final = 0x2
SA_RESTART: Final = 0x10000000
SA_NODEFER: Final = 0x40000000
SA_RESETHAND: Final = 0x80000000


class Signal(IntEnum):
    """Linux's signal numbers."""

    SIGHUP = 1
    SIGINT = 2
    SIGQUIT = 3
    SIGILL = 4
    SIGTRAP = 5
    SIGABRT = 6
    SIGBUS = 7
    SIGFPE = 8
    SIGKILL = 9
    SIGUSR1 = 10
    SIGSEGV = 11
    SIGUSR2 = 12
    SIGPIPE = 13
    SIGALRM = 14
    SIGTERM = 15
    SIGSTKFLT = 16
    SIGCHLD = 17
    SIGCONT = 18
    SIGSTOP = 19
    SIGTSTP = 20
    SIGTTIN = 21
    SIGTTOU = 22
    SIGURG = 23
    SIGXCPU = 24
    SIGXFSZ = 25
    SIGVTALRM = 26
    SIGPROF = 27
    SIGWINCH = 28
    SIGIO = 29
    SIGPWR = 30
    SIGSYS = 31


class DefaultAction(Enum):
    """What a signal does unless an action is set for it."""

    TERMINATE = "terminate"
    CORE = "core"
    IGNORE = "ignore"
    STOP = "stop"
    CONTINUE = "continue"


_CORE = {3, 4, 5, 6, 7, 8, 11, 24, 25, 31}
_IGNORE = {Signal.SIGCHLD, Signal.SIGURG, Signal.SIGWINCH}
_STOP = {Signal.SIGSTOP, Signal.SIGTSTP, Signal.SIGTTIN, Signal.SIGTTOU}


def _default_action(signo: int) -> DefaultAction:
    if signo in _CORE:
        return DefaultAction.CORE
    if signo in _IGNORE:
        return DefaultAction.IGNORE
    if signo in _STOP:
        return DefaultAction.STOP
    if signo == Signal.SIGCONT:
        return DefaultAction.CONTINUE
    return DefaultAction.TERMINATE


DEFAULT_ACTIONS: Final = tuple(_default_action(signo) for signo in range(SIGNAL_MAX + 1))


def mask_of(*signals: int) -> int:
    """The bit set of these signals (bit n-1 for signal n)."""
    bits = 0
    for signo in signals:
        bits |= 1 << (signo - 1)
    return bits


UNBLOCKABLE: Final = mask_of(Signal.SIGKILL, Signal.SIGSTOP)
STOP_SIGNALS: Final = mask_of(*_STOP)
SIGCONT_BIT: Final = mask_of(Signal.SIGCONT)
ALL_SIGNALS: Final = (1 << SIGNAL_MAX) - 1


def require_signal(signo: int) -> int:
    """`signo` if it is a valid signal number, else EINVAL."""
    if not 1 <= signo <= SIGNAL_MAX:
        raise KernelError(Errno.EINVAL, f"signal {signo}")
    return signo


class SignalAction(NamedTuple):
    """What rt_sigaction sets. A named tuple for speed: a shell sets dozens when it starts."""

    handler: int = SIG_DFL
    flags: int = 0
    mask: int = 0


@dataclass(frozen=True, slots=True)
class SignalInfo:
    """The fields of siginfo_t that we fill in."""

    signo: int
    code: int = 0
    pid: int = 0
    uid: int = 0
    status: int = 0


@dataclass(frozen=True, slots=True)
class TakenSignal:
    """A signal that a guest's handler is about to receive."""

    info: SignalInfo
    action: SignalAction
    old_mask: int


_DEFAULT: Final = SignalAction()


class SharedSignals(Protocol):
    """Actions and mask in a program's own memory. The program changes them without a call; what it
    writes there concerns only its own signals."""

    def mask(self) -> int:
        """The blocked set, without SIGKILL and SIGSTOP."""

    def set_mask(self, mask: int) -> None:
        """Replace the blocked set."""

    def action(self, signo: int) -> SignalAction:
        """The action for `signo`."""

    def handler(self, signo: int) -> int:
        """The handler of the action for `signo`."""

    def set_action(self, signo: int, action: SignalAction) -> None:
        """Set one action."""

    def actions(self) -> dict[int, SignalAction]:
        """All actions other than the default."""

    def ignored(self) -> list[int]:
        """The signals that are ignored."""

    def fill(self, mask: int, actions: Mapping[int, SignalAction]) -> None:
        """Replace everything."""

    def content(self) -> bytes:
        """Mask and actions, for `set_content`."""

    def set_content(self, content: bytes) -> None:
        """Replace everything by the content of another program's words."""

    def give(self, pid: int) -> None:
        """The words belong to the program from now on, which runs in this process."""

    def take_back(self) -> None:
        """The program has to ask the kernel from now on."""

    def say_pending(self, pending: bool) -> None:
        """Whether the program must tell the kernel when it changes a mask or an action."""


class SignalState:
    """The signal state of one process."""

    __slots__ = (
        "_actions",
        "_mask",
        "_threads",
        "pending",
        "pending_info",
        "saved_mask",
        "shared",
    )

    def __init__(self) -> None:
        self._actions: dict[int, SignalAction] = {}
        self._mask = 0
        self._threads: list[ThreadSignals] = []
        """The states of the process's threads, if it has several."""
        self.shared: SharedSignals | None = None
        """Where actions and mask are instead, if the program keeps them itself."""
        self.pending = 0
        self.pending_info: dict[int, SignalInfo] = {}
        self.saved_mask: int | None = None
        """The mask to restore, while sigsuspend or ppoll has replaced it."""

    @property
    def mask(self) -> int:
        """The blocked set."""
        shared = self.shared
        return self._mask if shared is None else shared.mask()

    @mask.setter
    def mask(self, mask: int) -> None:
        if self.shared is None:
            self._mask = mask
        else:
            self.shared.set_mask(mask)

    def share(self, words: SharedSignals, pid: int) -> None:
        """Keep actions and mask in these words of the program from now on."""
        if self.shared is None:
            words.fill(self._mask, self._actions)
        elif self.shared is not words:
            words.set_content(self.shared.content())
        self.shared = words
        words.give(pid)
        words.say_pending(bool(self.pending))

    def keep_alone(self) -> None:
        """Keep actions and mask in the kernel from now on."""
        shared = self.shared
        if shared is not None:
            self._mask, self._actions, self.shared = shared.mask(), shared.actions(), None
            shared.take_back()

    def leave(self, words: SharedSignals | None) -> None:
        """The memory of these words is about to go, and with it the program."""
        if words is not None and self.shared is words:
            self._mask, self._actions, self.shared = 0, {}, None

    def actions(self) -> dict[int, SignalAction]:
        """All actions that were set."""
        return dict(self._actions) if self.shared is None else self.shared.actions()

    def restore(
        self, actions: Mapping[int, SignalAction], mask: int, pending: Iterable[SignalInfo]
    ) -> None:
        """Take over the state of another process."""
        self._actions = dict(actions)
        self.set_mask(mask)
        for info in pending:
            self.add(info)

    def action(self, signo: int) -> SignalAction:
        """The action for `signo`."""
        shared = self.shared
        return self._actions.get(signo, _DEFAULT) if shared is None else shared.action(signo)

    def handler(self, signo: int) -> int:
        """The handler of the action for `signo`."""
        shared = self.shared
        if shared is not None:
            return shared.handler(signo)
        return self._actions.get(signo, _DEFAULT).handler

    def has_handler(self, signo: int) -> bool:
        """Whether the program handles `signo` itself."""
        return self.handler(signo) > SIG_IGN

    def ready(self) -> int:
        """The pending signals that are not blocked."""
        pending = self.pending
        if not pending:
            return 0
        shared = self.shared
        return pending & ~(self._mask if shared is None else shared.mask())

    def set_action(self, signo: int, action: SignalAction) -> None:
        """Set an action. A pending signal that is now ignored is discarded."""
        if UNBLOCKABLE >> (signo - 1) & 1:
            raise KernelError(Errno.EINVAL, f"signal {signo} cannot be caught")
        self._put_action(signo, action)
        if self.pending and self.ignores(signo):
            self.discard(mask_of(signo))

    def _put_action(self, signo: int, action: SignalAction) -> None:
        if self.shared is None:
            self._actions[signo] = action
        else:
            self.shared.set_action(signo, action)

    def ignores(self, signo: int) -> bool:
        """Whether delivery of `signo` would have no effect."""
        handler = self.handler(signo)
        if handler == SIG_IGN:
            return True
        return handler == SIG_DFL and DEFAULT_ACTIONS[signo] is DefaultAction.IGNORE

    def set_mask(self, mask: int) -> None:
        """Replace the blocked set."""
        self.mask = mask & ~UNBLOCKABLE

    def add(self, info: SignalInfo) -> None:
        """Make a signal pending."""
        bit = 1 << (info.signo - 1)
        if not self.pending & bit:
            self.pending_info[info.signo] = info
            self._set_pending(self.pending | bit)

    def _set_pending(self, pending: int) -> None:
        self.pending = pending
        for thread in self._threads:
            thread.look_again()

    def discard(self, bits: int) -> None:
        """Remove pending signals."""
        if self.pending & bits:
            self._set_pending(self.pending & ~bits)
            for signo in [s for s in self.pending_info if bits >> (s - 1) & 1]:
                del self.pending_info[signo]

    def next_deliverable(self, within: int | None = None) -> int:
        """The lowest pending signal that is not blocked (or is in `within`), or 0."""
        ready = self.pending & (~self.mask if within is None else within)
        return (ready & -ready).bit_length()

    def take(self, signo: int) -> SignalInfo:
        """Remove `signo` from the pending set."""
        self._set_pending(self.pending & ~(1 << (signo - 1)))
        return self.pending_info.pop(signo)

    def take_for_handler(self, signo: int) -> TakenSignal:
        """Remove `signo` and enter its handler: apply its mask and SA_RESETHAND."""
        info = self.take(signo)
        action = self.action(signo)
        old_mask = self.mask if self.saved_mask is None else self.saved_mask
        self.saved_mask = None
        mask = self.mask | action.mask
        if not action.flags & SA_NODEFER:
            mask |= mask_of(signo)
        self.set_mask(mask)
        if action.flags & SA_RESETHAND:
            self._put_action(signo, _DEFAULT)
        return TakenSignal(info, action, old_mask)

    def copy_for_fork(self) -> SignalState:
        """A forked child's state: same actions and mask, nothing pending. If the program keeps
        them, the child looks at its parent's until its own program is there to keep them."""
        child = SignalState()
        child.shared = self.shared
        if self.shared is None:
            child._actions = dict(self._actions)
            child._mask = self.mask if self.saved_mask is None else self.saved_mask
        return child

    def reset_for_exec(self) -> None:
        """Reset handlers, which belong to the old program; ignored signals stay ignored."""
        ignored = self._ignored()
        self._mask, self.shared = self.mask, None
        self._actions = dict.fromkeys(ignored, SignalAction(SIG_IGN))

    def ignored_set(self) -> int:
        """The mask of ignored signals, for /proc."""
        return mask_of(*self._ignored())

    def _ignored(self) -> list[int]:
        if self.shared is not None:
            return self.shared.ignored()
        return [s for s, action in self._actions.items() if action.handler == SIG_IGN]

    def caught_set(self) -> int:
        """The mask of signals with handlers, for /proc."""
        return mask_of(
            *[s for s, a in self.actions().items() if a.handler not in (SIG_DFL, SIG_IGN)]
        )


class ThreadSignals(SignalState):
    """The signals of one thread of several: it has its own mask and pending signals; the actions,
    and signals that all threads block, belong to the process. `pending` is the union of its own set
    and the process's; `leave_process` must be called when the thread ends."""

    __slots__ = ("_own", "_process")

    def __init__(self, process: SignalState) -> None:
        super().__init__()
        self._process = process
        self._own = SignalState()
        process._threads.append(self)
        self.look_again()

    def look_again(self) -> None:
        """A set of pending signals has changed."""
        self.pending = self._own.pending | self._process.pending

    def leave_process(self) -> None:
        """The thread has ended, or is the only one from now on."""
        self._process._threads.remove(self)

    def own_signals(self) -> tuple[SignalInfo, ...]:
        """The signals pending only for this thread."""
        return tuple(self._own.pending_info.values())

    def action(self, signo: int) -> SignalAction:
        """The action for `signo`."""
        return self._process.action(signo)

    def actions(self) -> dict[int, SignalAction]:
        """All actions that were set."""
        return self._process.actions()

    def handler(self, signo: int) -> int:
        """The handler of the action for `signo`."""
        return self._process.handler(signo)

    def _put_action(self, signo: int, action: SignalAction) -> None:
        self._process._put_action(signo, action)

    def _ignored(self) -> list[int]:
        return self._process._ignored()

    def add(self, info: SignalInfo) -> None:
        """Make a signal pending for this thread."""
        self._own.add(info)
        self.look_again()

    def discard(self, bits: int) -> None:
        """Remove pending signals."""
        self._own.discard(bits)
        self._process.discard(bits)
        self.look_again()

    def take(self, signo: int) -> SignalInfo:
        """Remove `signo` from the thread's own pending set, or else from the process's."""
        owner = self._own if self._own.pending >> (signo - 1) & 1 else self._process
        taken = owner.take(signo)
        self.look_again()
        return taken

    def copy_for_fork(self) -> SignalState:
        """A forked child's state, which has one thread."""
        child = self._process.copy_for_fork()
        child._mask = self.mask if self.saved_mask is None else self.saved_mask
        return child

    def reset_for_exec(self) -> None:
        """Never called: exec gives the thread the process's own signals first."""
        raise NotImplementedError
