"""The ledger compared with the memory of the host's process, under attacks with kernel objects.

Each attack runs in a process of its own, whose resident memory is measured before and after.
The ledger must account for at least half of the growth. It may account for more: costs are
rounded up, and the allocator has some memory in reserve.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

FACTOR = 2
_SCRIPT = """
import gc, json
from pathlib import Path
from tests.abi.caller import Sandbox
from tests.abi.objects import *
from wasmsand.kernel.limits import Limits

def resident():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024

sandbox = Sandbox(Limits(max_open_files=100_000, memory_limit_bytes=1 << 30))
caller = sandbox.process()
{prepare}
gc.collect()
before, entered = resident(), sandbox.kernel.ledger.used
{attack}
gc.collect()
print(json.dumps([resident() - before, sandbox.kernel.ledger.used - entered]))
"""

ATTACKS = {
    "connections that nobody accepts, clients gone": (
        "fds = [listener(caller, 5000 + n) for n in range(4)]",
        """
for number in range(4000):
    fd = connection(caller, 5000 + number % 4)
    send(caller, fd, b"x" * 500)
    caller.ok("close", fd)
""",
    ),
    "connections full of data": (
        "listener(caller, 5000)",
        """
for number in range(1000):
    send(caller, connection(caller, 5000), b"x" * 60_000)
""",
    ),
    "accepted connections": (
        "fd = listener(caller, 5000)",
        """
for number in range(2000):
    connection(caller, 5000)
    caller.ok("accept4", fd, 0, 0, 0)
""",
    ),
    "empty datagrams": (
        "for port in range(100): receiver(caller, 7000 + port)\n"
        "sender = caller.ok('socket', AF_INET, DATAGRAM, 0)",
        """
for number in range(100 * 600):
    caller.ok("sendto", sender, 0, 0, 0, *inet(caller, 7000 + number % 100))
""",
    ),
    "datagrams of 8 KiB": (
        "for port in range(150): receiver(caller, 7000 + port)\n"
        "sender = caller.ok('socket', AF_INET, DATAGRAM, 0)",
        """
for number in range(150 * 24):
    send(caller, sender, b"x" * 8192, inet(caller, 7000 + number % 150))
""",
    ),
    "pipes with a byte at the end of each piece": (
        "",
        """
for number in range(2500):
    source, sink = caller.pipe()
    caller.ok("write", sink, caller.room(4096), 4096)
    caller.ok("read", source, caller.room(4095), 4095)
""",
    ),
    "watches of files of their own": (
        "epolls = [caller.ok('epoll_create1', 0) for _ in range(8)]",
        """
for number in range(5000):
    fd = caller.ok("eventfd2", 1, 0)
    assert watch(caller, epolls[number % 8], fd) == 0
""",
    ),
    "an epoll file for each watch": (
        "source, sink = caller.pipe()",
        """
for number in range(5000):
    assert watch(caller, caller.ok("epoll_create1", 0), sink, 4) == 0
""",
    ),
    "sockets with every option": (
        "",
        """
for number in range(1000):
    all_options(caller, caller.ok("socket", AF_INET, STREAM, 0))
""",
    ),
    "processes that have ended, behind pidfds": (
        "import tests.abi.objects as objects",
        """
for number in range(1800):
    objects._gone(caller)
""",
    ),
    "open files": ("", "for number in range(20_000): caller.open(b'/tmp/file', 0o102)"),
    "further fds": ("caller.pipe()", "for number in range(60_000): caller.ok('dup', 0)"),
    "record locks": (
        "fds = [caller.open(b'/tmp/file%d' % n, 0o102) for n in range(16)]",
        """
for number in range(16_000):
    assert record_lock(caller, fds[number % 16], number * 2) == 0
""",
    ),
    "armed timers": ("", "for number in range(7000): timer(caller, 1000 + number)"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_ledger_accounts_for_the_hosts_memory(attack: str) -> None:
    prepare, work = ATTACKS[attack]
    script = _SCRIPT.format(prepare=prepare, attack=work)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    grown, entered = json.loads(done.stdout)
    print(f"{attack}: {grown >> 10} KiB resident, {entered >> 10} KiB in the ledger")
    assert grown <= entered * FACTOR
    assert entered > 5_000_000, "the attack is too small for a measurement"
