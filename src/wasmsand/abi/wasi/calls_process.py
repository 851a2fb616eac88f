"""The process: proc_exit, proc_raise, sched_yield, random_get.

Rules: an exit code is the low eight bits, as on Unix. A program cannot handle signals, so raising
one takes its default action, or none if the process inherited it as ignored.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.wasi.context import WasiContext
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import IO_CHUNK
from wasmsand.kernel.process.delivery import SI_USER, post
from wasmsand.kernel.process.signals import Signal, SignalInfo
from wasmsand.kernel.wait import Yield

_SIGNAL_NAMES: Final = """
    HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM CHLD CONT STOP TSTP TTIN
    TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS
"""
SIGNALS: Final[tuple[int, ...]] = tuple(int(Signal["SIG" + name]) for name in _SIGNAL_NAMES.split())
"""Linux's numbers for the signals 1, 2 ... of preview 1."""


def proc_exit(context: WasiContext, code: int) -> int:
    """End the process."""
    return context.end((code & 0xFF) << 8)


def proc_raise(context: WasiContext, signal: int) -> int:
    """Send a signal to the calling process; 0 sends none."""
    if signal > len(SIGNALS):
        raise KernelError(Errno.EINVAL)
    if signal:
        process = context.process
        info = SignalInfo(SIGNALS[signal - 1], SI_USER, process.pid, process.identity.uid)
        post(context.kernel, process, info)
    return 0


def sched_yield(context: WasiContext) -> int:
    """Nothing to do: processes run concurrently."""
    return 0


def random_get(context: WasiContext, address: int, size: int) -> int:
    """Fill a buffer with random bytes. A long buffer is filled in steps, between which other
    processes run and this one can be killed."""
    context.memory.require(address, size)
    call = context.thread.call
    done = call.done
    step = min(size - done, IO_CHUNK)
    context.memory.write(address + done, context.kernel.random(step))
    if done + step < size:
        call.done = done + step
        raise Yield
    return 0
