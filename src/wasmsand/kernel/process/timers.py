"""Interval timers (alarm, setitimer) and the CPU time limit.

Owns when a process's timers expire, and RLIMIT_CPU. Rules: the kernel does not wait. It tells the
machine when the next timer is due (`Kernel.timer_armed`), and the machine calls `fire_timers` then.
While a process computes, `enforce_cpu_limit` is called at every tick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.limits import TIMERS_PER_HOLD
from wasmsand.kernel.process.delivery import SI_KERNEL, post
from wasmsand.kernel.process.process import CpuTimer, Process
from wasmsand.kernel.process.rlimits import CPU, Limit
from wasmsand.kernel.process.signals import Signal, SignalInfo

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel


def set_real_timer(
    kernel: Kernel, process: Process, value_ns: int, interval_ns: int
) -> tuple[int, int]:
    """Arm the timer (0: disarm it). Returns the old (remaining, interval)."""
    now = kernel.clock.monotonic()
    old = real_timer(kernel, process)
    process.real_timer_deadline = now + value_ns if value_ns else 0
    process.real_timer_interval = interval_ns
    if value_ns:
        kernel.timer_armed(process.real_timer_deadline)
    return old


def real_timer(kernel: Kernel, process: Process) -> tuple[int, int]:
    """(remaining, interval) in nanoseconds; remaining is 0 when not armed."""
    deadline = process.real_timer_deadline
    remaining = max(1, deadline - kernel.clock.monotonic()) if deadline else 0
    return remaining, process.real_timer_interval


def fire_timers(kernel: Kernel) -> int | None:
    """Fire the timers that are due, up to a bounded number. Returns when to call again (monotonic),
    or None."""
    now = kernel.clock.monotonic()
    earliest: int | None = None
    for process in kernel.processes:
        deadline = process.real_timer_deadline
        if not deadline:
            continue
        if deadline <= now:
            interval = process.real_timer_interval
            process.real_timer_deadline = max(deadline + interval, now + 1) if interval else 0
            post(kernel, process, SignalInfo(Signal.SIGALRM, SI_KERNEL))
            deadline = process.real_timer_deadline
        if deadline and (earliest is None or deadline < earliest):
            earliest = deadline
    files = kernel.timer_files
    for _ in range(TIMERS_PER_HOLD):
        timer = files.take_due(now)
        if timer is None:
            break
        due = timer.fire(now)
        if due is not None:
            files.set(timer, due)
    due = files.earliest()
    if due is not None and (earliest is None or due < earliest):
        earliest = due
    return earliest


def set_cpu_timer(
    process: Process, signal: Signal, used_ns: int, value_ns: int, interval_ns: int
) -> tuple[int, int]:
    """Arm the timer that sends `signal` (0: disarm it). Returns the old (remaining, interval)."""
    old = cpu_timer(process, signal, used_ns)
    if value_ns:
        process.cpu_timers[signal] = CpuTimer(used_ns + value_ns, interval_ns)
    else:
        process.cpu_timers.pop(signal, None)
    return old


def cpu_timer(process: Process, signal: Signal, used_ns: int) -> tuple[int, int]:
    """(remaining, interval) in nanoseconds of CPU time; remaining is 0 when not armed."""
    timer = process.cpu_timers.get(signal)
    if timer is None:
        return 0, 0
    return max(1, timer.deadline_ns - used_ns), timer.interval_ns


def fire_cpu_timers(kernel: Kernel, process: Process) -> None:
    """Fire the CPU-time timers that are due."""
    used = process.usage.user_ns
    for signo, timer in tuple(process.cpu_timers.items()):
        if used >= timer.deadline_ns:
            if timer.interval_ns:
                process.cpu_timers[signo] = timer._replace(deadline_ns=used + timer.interval_ns)
            else:
                del process.cpu_timers[signo]
            post(kernel, process, SignalInfo(Signal(signo), SI_KERNEL))


def enforce_cpu_limit(kernel: Kernel, process: Process) -> None:
    """RLIMIT_CPU: SIGXCPU at the soft limit and every second after it, SIGKILL at the hard limit.
    Also fires CPU-time timers."""
    if process.cpu_timers:
        fire_cpu_timers(kernel, process)
    limit = process.rlimits.get(CPU)
    used = process.usage.user_ns // SECOND
    if used >= limit.hard:
        post(kernel, process, SignalInfo(Signal.SIGKILL, SI_KERNEL))
    elif used >= limit.soft:
        process.rlimits.set(CPU, Limit(limit.soft + 1, limit.hard), privileged=True)
        post(kernel, process, SignalInfo(Signal.SIGXCPU, SI_KERNEL))
