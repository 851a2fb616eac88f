"""The files of /proc that describe the system, as text.

Owns one function per file, from `SystemInfo` to bytes. Rules: formats are Linux's. The table at the
end lists the files with a function of their own and the single lines under /proc/sys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wasmsand.kernel.limits import GROUPS_MAX
from wasmsand.kernel.vfs.proc.source import SystemInfo

_PAGE: Final = 4096
_TICK_NS: Final = 10_000_000
_SECOND_NS: Final = 1_000_000_000


def meminfo(system: SystemInfo) -> bytes:
    """Memory in KiB; there is no swap and no cache."""
    total = system.memory_total_bytes // 1024
    free = min(system.memory_free_bytes // 1024, total)
    used = total - free
    values = {
        "MemTotal": total,
        "MemFree": free,
        "MemAvailable": free,
        "Buffers": 0,
        "Cached": 0,
        "SwapCached": 0,
        "Active": used,
        "Inactive": 0,
        "Active(anon)": used,
        "Inactive(anon)": 0,
        "Active(file)": 0,
        "Inactive(file)": 0,
        "Unevictable": 0,
        "Mlocked": 0,
        "SwapTotal": 0,
        "SwapFree": 0,
        "Dirty": 0,
        "Writeback": 0,
        "AnonPages": used,
        "Mapped": 0,
        "Shmem": 0,
        "KReclaimable": 0,
        "Slab": 0,
        "SReclaimable": 0,
        "SUnreclaim": 0,
        "KernelStack": 0,
        "PageTables": 0,
        "CommitLimit": total,
        "Committed_AS": used,
    }
    lines = [f"{label + ':':<15} {value:8d} kB\n" for label, value in values.items()]
    return "".join(lines).encode()


def cpuinfo(system: SystemInfo) -> bytes:
    """One paragraph per processor."""
    paragraph = (
        "processor\t: {0}\n"
        "vendor_id\t: wasmsand\n"
        "cpu family\t: 0\n"
        "model\t\t: 0\n"
        "model name\t: WebAssembly 32-bit\n"
        "stepping\t: 0\n"
        "cpu MHz\t\t: 1000.000\n"
        "physical id\t: 0\n"
        "siblings\t: {1}\n"
        "core id\t\t: {0}\n"
        "cpu cores\t: {1}\n"
        "flags\t\t: simd128\n"
        "bogomips\t: 2000.00\n"
        "\n"
    )
    count = system.cpu_count
    return "".join(paragraph.format(number, count) for number in range(count)).encode()


def uptime(system: SystemInfo) -> bytes:
    """Seconds since boot, and the idle seconds of all processors together."""
    up = system.uptime_ns
    return f"{up / _SECOND_NS:.2f} {_idle_ns(system) / _SECOND_NS:.2f}\n".encode()


def loadavg(system: SystemInfo) -> bytes:
    """Three averages, running and total processes, the last pid."""
    averages = " ".join(f"{load:.2f}" for load in system.load)
    text = f"{averages} {system.running}/{system.processes} {system.last_pid}\n"
    return text.encode()


def stat(system: SystemInfo) -> bytes:
    """Processor times in ticks: the total, and an equal part for each processor."""
    times = [system.user_time_ns, 0, system.system_time_ns, _idle_ns(system), 0, 0, 0, 0, 0, 0]
    ticks = [time // _TICK_NS for time in times]
    lines = ["cpu  " + " ".join(str(tick) for tick in ticks)]
    for number in range(system.cpu_count):
        share = " ".join(str(tick // system.cpu_count) for tick in ticks)
        lines.append(f"cpu{number} {share}")
    lines += [
        "intr 0",
        "ctxt 0",
        f"btime {system.boot_time_s}",
        f"processes {system.forks}",
        f"procs_running {system.running}",
        "procs_blocked 0",
        "softirq 0 0 0 0 0 0 0 0 0 0 0",
    ]
    return ("\n".join(lines) + "\n").encode()


def version(system: SystemInfo) -> bytes:
    """The uname data on one line."""
    return b"Linux version %s (wasmsand) %s\n" % (system.os_release, system.version)


def filesystems(system: SystemInfo) -> bytes:
    """The mountable file systems."""
    return b"nodev\tproc\nnodev\ttmpfs\n"


def vmstat(system: SystemInfo) -> bytes:
    """Pages in use; there is no paging and no swap."""
    free = system.memory_free_bytes // _PAGE
    used = system.memory_total_bytes // _PAGE - free
    values = {
        "nr_free_pages": free,
        "nr_inactive_anon": 0,
        "nr_active_anon": used,
        "nr_inactive_file": 0,
        "nr_active_file": 0,
        "nr_anon_pages": used,
        "nr_mapped": 0,
        "nr_file_pages": 0,
        "nr_dirty": 0,
        "nr_writeback": 0,
        "pgpgin": 0,
        "pgpgout": 0,
        "pswpin": 0,
        "pswpout": 0,
        "pgfault": 0,
        "pgmajfault": 0,
    }
    return "".join(f"{name} {value}\n" for name, value in values.items()).encode()


def _idle_ns(system: SystemInfo) -> int:
    busy = system.user_time_ns + system.system_time_ns
    return max(0, system.uptime_ns * system.cpu_count - busy)


_DEVICES = b"""\
Character devices:
  1 mem
  5 /dev/tty
  5 /dev/console
  5 /dev/ptmx
136 pts

Block devices:
"""
_TERMINAL_DRIVERS = b"""\
/dev/tty             /dev/tty        5       0 system:/dev/tty
/dev/console         /dev/console    5       1 system:console
/dev/ptmx            /dev/ptmx       5       2 system
pty_slave            /dev/pts      136 0-1048575 pty:slave
pty_master           /dev/ptm      128 0-1048575 pty:master
"""

Render = Callable[[SystemInfo], bytes]

FILES: dict[bytes, Render] = {
    b"cmdline": lambda system: b"wasmsand\n",
    b"cpuinfo": cpuinfo,
    b"devices": lambda system: _DEVICES,
    b"diskstats": lambda system: b"",
    b"filesystems": filesystems,
    b"loadavg": loadavg,
    b"meminfo": meminfo,
    b"modules": lambda system: b"",
    b"partitions": lambda system: b"major minor  #blocks  name\n\n",
    b"stat": stat,
    b"swaps": lambda system: b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
    b"sys/fs/file-max": lambda system: b"1048576\n",
    b"sys/fs/nr_open": lambda system: b"1048576\n",
    b"sys/fs/pipe-max-size": lambda system: b"65536\n",
    b"sys/kernel/cap_last_cap": lambda system: b"40\n",
    b"sys/kernel/core_pattern": lambda system: b"core\n",
    b"sys/kernel/domainname": lambda system: b"(none)\n",
    b"sys/kernel/hostname": lambda system: system.hostname + b"\n",
    b"sys/kernel/ngroups_max": lambda system: b"%d\n" % GROUPS_MAX,
    b"sys/kernel/osrelease": lambda system: system.os_release + b"\n",
    b"sys/kernel/ostype": lambda system: b"Linux\n",
    b"sys/kernel/overflowgid": lambda system: b"65534\n",
    b"sys/kernel/overflowuid": lambda system: b"65534\n",
    b"sys/kernel/panic": lambda system: b"0\n",
    b"sys/kernel/pid_max": lambda system: b"%d\n" % system.pid_max,
    b"sys/kernel/random/boot_id": lambda system: system.boot_id + b"\n",
    b"sys/kernel/random/entropy_avail": lambda system: b"256\n",
    b"sys/kernel/random/poolsize": lambda system: b"256\n",
    b"sys/kernel/randomize_va_space": lambda system: b"0\n",
    b"sys/kernel/tainted": lambda system: b"0\n",
    b"sys/kernel/threads-max": lambda system: b"%d\n" % system.processes_max,
    b"sys/kernel/version": lambda system: system.version + b"\n",
    b"sys/vm/max_map_count": lambda system: b"65530\n",
    b"sys/vm/overcommit_memory": lambda system: b"0\n",
    b"sys/vm/overcommit_ratio": lambda system: b"50\n",
    b"sys/vm/panic_on_oom": lambda system: b"0\n",
    b"sys/vm/swappiness": lambda system: b"0\n",
    b"tty/drivers": lambda system: _TERMINAL_DRIVERS,
    b"uptime": uptime,
    b"version": version,
    b"vmstat": vmstat,
}
"""Text functions by path below /proc, in the order of a listing."""
