"""Signals: actions, masks, sending, waiting for and taking them.

Owns the signal calls. Rules: a mask from the guest never blocks SIGKILL or SIGSTOP. A change of
mask or action may unblock pending signals; these take effect at once, or the guest takes them when
the call returns.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.linux.context import CallContext, signed
from wasmsand.abi.linux.structs import SIGACTION, pack_siginfo, pack_taken_signal
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.delivery import (
    SI_TKILL,
    act_on_pending,
    deliverable_handler,
    may_signal,
    post_to_thread,
    take_for_handler,
)
from wasmsand.kernel.process.delivery import (
    kill as send,
)
from wasmsand.kernel.process.signals import SignalAction, SignalInfo, require_signal
from wasmsand.kernel.process.thread_life import thread_of
from wasmsand.kernel.wait import WouldBlock

_SIG_BLOCK, _SIG_UNBLOCK, _SIG_SETMASK = range(3)
_MASK_BYTES: Final = 8


def _require_mask_size(size: int) -> None:
    if size != _MASK_BYTES:
        raise KernelError(Errno.EINVAL)


def rt_sigaction(context: CallContext, signo: int, new: int, old: int, size: int) -> int:
    """rt_sigaction(2)."""
    _require_mask_size(size)
    require_signal(signo)
    signals = context.thread.signals
    previous = signals.action(signo)
    if new:
        handler, flags, _, mask = context.memory.unpack(SIGACTION, new)
        if old:
            context.memory.require(old, SIGACTION.size)
        signals.set_action(signo, SignalAction(handler, flags, mask))
        _act_on_change(context)
    if old:
        context.memory.pack(SIGACTION, old, previous.handler, previous.flags, 0, previous.mask)
    return 0


def rt_sigprocmask(context: CallContext, how: int, new: int, old: int, size: int) -> int:
    """rt_sigprocmask(2)."""
    _require_mask_size(size)
    signals = context.thread.signals
    previous = signals.mask
    if new:
        mask = context.memory.read_u64(new)
        if how == _SIG_BLOCK:
            signals.set_mask(previous | mask)
        elif how == _SIG_UNBLOCK:
            signals.set_mask(previous & ~mask)
        elif how == _SIG_SETMASK:
            signals.set_mask(mask)
        else:
            raise KernelError(Errno.EINVAL)
    if old:
        context.memory.write_u64(old, previous)
    _act_on_change(context)
    return 0


def _act_on_change(context: CallContext) -> None:
    """A mask or an action may have changed, also in the program's own memory: pending signals may
    take effect."""
    signals = context.thread.signals
    if signals.pending:
        act_on_pending(context.kernel, context.thread)
    if signals.shared is not None:
        signals.shared.say_pending(bool(signals.pending))


def rt_sigpending(context: CallContext, address: int, size: int) -> int:
    """rt_sigpending(2)."""
    _require_mask_size(size)
    signals = context.thread.signals
    context.memory.write_u64(address, signals.pending & signals.mask)
    return 0


def replace_mask_while_waiting(context: CallContext, address: int, size: int) -> None:
    """Use another mask until the call ends (sigsuspend, ppoll, pselect)."""
    _require_mask_size(size)
    signals = context.thread.signals
    if signals.saved_mask is None:
        signals.saved_mask = signals.mask
        signals.set_mask(context.memory.read_u64(address))
        act_on_pending(context.kernel, context.thread)


def restore_mask_after_waiting(context: CallContext) -> None:
    """Restore the mask, unless a handler is about to run (its return restores the mask)."""
    signals = context.thread.signals
    if signals.saved_mask is not None and not deliverable_handler(context.thread):
        signals.set_mask(signals.saved_mask)
        signals.saved_mask = None


def rt_sigsuspend(context: CallContext, address: int, size: int) -> int:
    """rt_sigsuspend(2): a signal always ends it."""
    replace_mask_while_waiting(context, address, size)
    raise WouldBlock((context.thread.signal_queue,))


def rt_sigtimedwait(context: CallContext, wanted: int, info: int, timeout: int, size: int) -> int:
    """rt_sigtimedwait_time64(2)."""
    _require_mask_size(size)
    thread = context.thread
    within = context.memory.read_u64(wanted)
    signo = thread.signals.next_deliverable(within)
    if signo:
        taken = thread.signals.take(signo)
        if info:
            context.memory.write(info, pack_siginfo(taken))
        return signo
    now = context.kernel.clock.monotonic()
    deadline = thread.call.deadline
    if timeout and deadline is None:
        deadline = now + context.timespec(timeout)
    if deadline is not None and now >= deadline:
        raise KernelError(Errno.EAGAIN)
    raise WouldBlock((thread.signal_queue,), deadline)


def kill(context: CallContext, pid: int, signo: int) -> int:
    """kill(2)."""
    send(context.kernel, context.process, signed(pid), signed(signo))
    return 0


def tkill(context: CallContext, thread: int, signo: int) -> int:
    """tkill(2)."""
    return _send_to_thread(context, None, signed(thread), signed(signo))


def tgkill(context: CallContext, group: int, thread: int, signo: int) -> int:
    """tgkill(2)."""
    if signed(group) <= 0:
        raise KernelError(Errno.EINVAL)
    return _send_to_thread(context, signed(group), signed(thread), signed(signo))


def _send_to_thread(context: CallContext, group: int | None, tid: int, signo: int) -> int:
    if tid <= 0:
        raise KernelError(Errno.EINVAL)
    target = thread_of(context.kernel, tid, group)
    if signo:
        require_signal(signo)
    sender = context.process
    if not may_signal(sender, target.process, signo):
        raise KernelError(Errno.EPERM)
    if signo:
        info = SignalInfo(signo, SI_TKILL, sender.pid, sender.identity.uid)
        post_to_thread(context.kernel, target, info)
    return 0


def sigaltstack(context: CallContext, new: int, old: int) -> int:
    """sigaltstack(2): accepted, without effect; handlers run on the ordinary stack."""
    if old:
        context.memory.write(old, b"\0\0\0\0\2\0\0\0\0\0\0\0")
    return 0


def signal_take(context: CallContext, address: int) -> int:
    """wasmsand only: the next signal for a handler of the guest."""
    context.memory.require(address, 152)
    context.lower_signal_flag()  # set again on return if another signal is pending
    signals = context.thread.signals
    taken = take_for_handler(context.thread)
    if signals.shared is not None and not signals.pending:
        signals.shared.say_pending(False)
    if taken is None:
        return 0
    context.memory.write(address, pack_taken_signal(taken))
    return taken.info.signo


def signal_return(context: CallContext, address: int) -> int:
    """wasmsand only: a handler has returned; restore the mask."""
    context.thread.signals.set_mask(context.memory.read_u64(address))
    act_on_pending(context.kernel, context.thread)
    return 0
