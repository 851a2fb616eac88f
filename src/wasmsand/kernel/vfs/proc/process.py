"""The files of /proc/PID as text, in the formats that procps and coreutils parse.

Owns one function per file, from `ProcessFacts` to bytes. Rules: field order and widths are Linux's;
values that a WebAssembly process does not have (addresses, faults) are 0.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.vfs.proc.source import FdInfo, ProcessFacts

PAGE: Final = 4096
TICK_NS: Final = 10_000_000
"""USER_HZ is 100."""
UNLIMITED: Final = (1 << 64) - 1
"""RLIM_INFINITY."""
_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "disk sleep",
    "T": "stopped",
    "t": "tracing stop",
    "Z": "zombie",
    "X": "dead",
}
_LIMITS: Final = (
    ("Max cpu time", 0, "seconds"),
    ("Max file size", 1, "bytes"),
    ("Max data size", 2, "bytes"),
    ("Max stack size", 3, "bytes"),
    ("Max core file size", 4, "bytes"),
    ("Max resident set", 5, "bytes"),
    ("Max processes", 6, "processes"),
    ("Max open files", 7, "files"),
    ("Max locked memory", 8, "bytes"),
    ("Max address space", 9, "bytes"),
    ("Max file locks", 10, "locks"),
    ("Max pending signals", 11, "signals"),
    ("Max msgqueue size", 12, "bytes"),
    ("Max nice priority", 13, ""),
    ("Max realtime priority", 14, ""),
    ("Max realtime timeout", 15, "us"),
)


def stat(info: ProcessFacts) -> bytes:
    """One line of 52 fields; all but state and comm are numbers."""
    fields = [
        info.state,
        info.ppid,
        info.pgid,
        info.sid,
        info.tty,
        info.tty_pgid,
        0,  # flags
        0,  # minor faults
        0,  # children's minor faults
        0,  # major faults
        0,  # children's major faults
        info.user_time_ns // TICK_NS,
        info.system_time_ns // TICK_NS,
        info.children_user_time_ns // TICK_NS,
        info.children_system_time_ns // TICK_NS,
        20 + info.nice,
        info.nice,
        max(1, len(info.threads)),
        0,  # interval timer
        info.start_time_ns // TICK_NS,
        info.memory_bytes,
        info.memory_bytes // PAGE,
        (1 << 64) - 1,  # resident set limit
        *[0] * 5,  # code, stack and instruction addresses
        info.signals_pending,
        info.signals_blocked,
        info.signals_ignored,
        info.signals_caught,
        *[0] * 3,  # wait channel, swaps
        17,  # the signal at exit: SIGCHLD
        *[0] * 13,  # processor, scheduling, addresses of data, arguments, environment
        info.exit_code,
    ]
    text = " ".join(str(field) for field in fields).encode()
    return b"%d (%s) %s\n" % (info.pid, info.name, text)


def statm(info: ProcessFacts) -> bytes:
    """Sizes in pages."""
    pages = info.memory_bytes // PAGE
    return b"%d %d 0 0 0 %d 0\n" % (pages, pages, pages)


def status(info: ProcessFacts) -> bytes:
    """The human-readable form."""
    kib = info.memory_bytes // 1024
    peak = max(info.memory_peak_bytes // 1024, kib)
    state = f"{info.state} ({_STATES.get(info.state, 'unknown')})"
    name = info.name.decode("utf-8", "backslashreplace").replace("\\", "\\\\").replace("\n", "\\n")
    lines = [
        f"Name:\t{name}",
        f"Umask:\t{info.umask:04o}",
        f"State:\t{state}",
        f"Tgid:\t{info.tgid or info.pid}",
        "Ngid:\t0",
        f"Pid:\t{info.pid}",
        f"PPid:\t{info.ppid}",
        "TracerPid:\t0",
        "Uid:\t" + "\t".join(str(uid) for uid in (*info.uids, info.uids[1])),
        "Gid:\t" + "\t".join(str(gid) for gid in (*info.gids, info.gids[1])),
        "FDSize:\t64",
        "Groups:\t" + "".join(f"{gid} " for gid in info.groups),
        f"NStgid:\t{info.tgid or info.pid}",
        f"NSpid:\t{info.pid}",
        f"NSpgid:\t{info.pgid}",
        f"NSsid:\t{info.sid}",
    ]
    if info.state != "Z":
        lines += [
            f"{label}:\t{size:8d} kB"
            for label, size in (
                ("VmPeak", peak),
                ("VmSize", kib),
                ("VmLck", 0),
                ("VmPin", 0),
                ("VmHWM", peak),
                ("VmRSS", kib),
                ("RssAnon", kib),
                ("RssFile", 0),
                ("RssShmem", 0),
                ("VmData", kib),
                ("VmStk", 0),
                ("VmExe", 0),
                ("VmLib", 0),
                ("VmPTE", 0),
                ("VmSwap", 0),
            )
        ]
    capabilities = (1 << 41) - 1 if info.uids[1] == 0 else 0
    lines += [
        f"Threads:\t{max(1, len(info.threads))}",
        "SigQ:\t0/1024",
        f"SigPnd:\t{info.signals_pending:016x}",
        "ShdPnd:\t0000000000000000",
        f"SigBlk:\t{info.signals_blocked:016x}",
        f"SigIgn:\t{info.signals_ignored:016x}",
        f"SigCgt:\t{info.signals_caught:016x}",
        "CapInh:\t0000000000000000",
        f"CapPrm:\t{capabilities:016x}",
        f"CapEff:\t{capabilities:016x}",
        f"CapBnd:\t{capabilities:016x}",
        "CapAmb:\t0000000000000000",
        "NoNewPrivs:\t0",
        "Seccomp:\t0",
        "voluntary_ctxt_switches:\t0",
        "nonvoluntary_ctxt_switches:\t0",
    ]
    return ("\n".join(lines) + "\n").encode()


def comm(info: ProcessFacts) -> bytes:
    """The name and a newline."""
    return info.name + b"\n"


def cmdline(info: ProcessFacts) -> bytes:
    """The arguments, each terminated by NUL; empty for a zombie."""
    return b"".join([argument + b"\0" for argument in info.cmdline])


def environ(info: ProcessFacts) -> bytes:
    """The environment at exec, each variable terminated by NUL."""
    return b"".join([variable + b"\0" for variable in info.environ])


def cgroup(info: ProcessFacts) -> bytes:
    """The only control group."""
    return b"0::/\n"


def children(info: ProcessFacts) -> bytes:
    """The children's pids, each followed by a space."""
    return b"".join([b"%d " % pid for pid in info.children])


def loginuid(info: ProcessFacts) -> bytes:
    """Unset: nobody has logged in."""
    return b"4294967295"


def oom_score(info: ProcessFacts) -> bytes:
    """The process's share of the memory limit: the OOM killer ends the largest process first."""
    return b"%d\n" % (info.memory_share * 1000)


def oom_score_adj(info: ProcessFacts) -> bytes:
    """Always 0: no process is preferred."""
    return b"0\n"


def schedstat(info: ProcessFacts) -> bytes:
    """CPU time in nanoseconds. The time spent waiting for a processor is not known."""
    return b"%d 0 0\n" % (info.user_time_ns + info.system_time_ns)


def wchan(info: ProcessFacts) -> bytes:
    """Always 0: kernel wait channels are not shown."""
    return b"0"


def limits(info: ProcessFacts) -> bytes:
    """The table of resource limits."""
    lines = [f"{'Limit':<25} {'Soft Limit':<20} {'Hard Limit':<20} {'Units':<10}"]
    for label, number, unit in _LIMITS:
        soft, hard = [
            "unlimited" if value == UNLIMITED else str(value)
            for value in info.rlimits.get(number, (UNLIMITED, UNLIMITED))
        ]
        lines.append(f"{label:<25} {soft:<20} {hard:<20} {unit:<10}")
    return ("\n".join(lines) + "\n").encode()


def maps(info: ProcessFacts) -> bytes:
    """One mapping: the linear memory."""
    return b"00000000-%08x rw-p 00000000 00:00 0 \n" % info.memory_bytes


def fdinfo(info: FdInfo) -> bytes:
    """Position and flags of a descriptor."""
    return b"pos:\t%d\nflags:\t0%o\nmnt_id:\t1\n" % (info.position, info.flags)
