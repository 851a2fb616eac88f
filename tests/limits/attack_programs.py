"""The programs of `attacks.py`: Python for the sandbox's Python, and WebAssembly text.

Rule: a program takes as much as it can get, and continues when it is refused.
"""

from __future__ import annotations

from typing import Final

THREADS: Final = """\
import threading, time
def sleep():
    time.sleep(60)
while True:
    try:
        threading.Thread(target=sleep, daemon=True).start()
    except (RuntimeError, MemoryError):
        time.sleep(0.001)
"""

EXEC_ARGUMENTS: Final = """\
import os
for count in (290_000, 100_000, 50_000):
    try:
        os.execv("/bin/true", ["x"] * count)
    except OSError:
        pass
"""

EXEC_ITSELF: Final = """\
import os
os.execv("/usr/bin/python3", ["python3", "/tmp/attack.py"])
"""

TIMER_STORM: Final = """\
import signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
while True:
    signal.pause()
"""

TIMERS_REARMED: Final = """\
import signal
far = 1e6
while True:
    far += 1
    signal.setitimer(signal.ITIMER_REAL, far)
"""

REGULAR_EXPRESSION: Final = """\
import re
re.match(r"(a*)*b", "a" * 64)
"""

MEMORY: Final = """\
kept = []
size = 1 << 20
while True:
    try:
        kept.append(bytearray(b"x") * size)
    except MemoryError:
        size = max(size >> 1, 64)
"""

MEMORY_OF_MANY: Final = (
    "grow() { x=xxxxxxxx; for i in {1..22}; do x=$x$x; done; sleep 1; }; "
    "for i in {1..12}; do grow & done; wait"
)

RUN_MANY: Final = "for i in {1..24}; do /tmp/attack & done; wait"

EPOLL_FAN_OUT: Final = """\
import os, select

def watch(one, other):
    try:
        one.register(other.fileno(), select.EPOLLIN)
    except OSError:
        pass

def layers(count, width):
    return [[select.epoll() for _ in range(width)] for _ in range(count)]

def connect(pairs):
    for above, below in pairs:
        for one in above:
            for other in below:
                watch(one, other)

upper, lower = layers(11, 3), layers(4, 20)
connect(zip(upper, upper[1:]))  # each is still empty: no depth is seen
connect(reversed(list(zip(lower, lower[1:]))))  # as deep as is allowed
for one in upper[-1]:
    watch(one, lower[0][0])
reading, writing = os.pipe()
for one in lower[-1]:
    one.register(reading, select.EPOLLIN)
for layer in reversed(upper):
    layer[0].poll(0)  # nothing is ready: every path is looked at
while True:
    os.write(writing, b"x")
    upper[0][0].poll(0)
    os.read(reading, 1)
"""

EPOLL_CHAIN: Final = """\
import os, select
chain = [select.epoll() for _ in range(900)]
for one, other in zip(chain, chain[1:]):
    try:
        one.register(other.fileno(), select.EPOLLIN)
    except OSError:
        pass
for one, other in reversed(list(zip(chain, chain[1:]))):
    try:
        one.register(other.fileno(), select.EPOLLIN)
    except OSError:
        pass
reading, writing = os.pipe()
chain[-1].register(reading, select.EPOLLIN)
while True:
    os.write(writing, b"x")
    chain[0].poll(0)
"""

EPOLL_WATCHES: Final = """\
import os, select
ends = [os.dup(0) for _ in range(400)] + [end for _ in range(100) for end in os.pipe()]
epolls = [select.epoll() for _ in range(300)]
for one in epolls:
    for end in ends:
        try:
            one.register(end, select.EPOLLIN)
        except OSError:
            pass
while True:
    for one in epolls:
        one.poll(0)
"""

CONNECTIONS: Final = """\
import socket
servers = []
for family, address in ((socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, "\\0attack")):
    server = socket.socket(family)
    server.bind(address)
    server.listen(4096)
    servers.append(server)
kept = []
while True:
    for server in servers:
        client = socket.socket(server.family)
        client.setblocking(False)
        try:
            client.connect(server.getsockname())
            while client.send(bytes(65536)):
                pass
        except OSError:
            pass
        if len(kept) < 300:
            kept.append(client)
"""

DATAGRAMS: Final = """\
import socket
sockets = []
for number in range(800):
    try:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind(("127.0.0.1", 0))
        sockets.append(one)
    except OSError:
        break
sender = sockets.pop()
sender.setblocking(False)
while True:
    for one in sockets:
        try:
            sender.sendto(bytes(60_000), one.getsockname())
        except OSError:
            pass
"""

RIGHTS: Final = """\
import os, socket
while True:
    try:
        pairs = [socket.socketpair() for _ in range(100)]
    except OSError:
        continue
    for one, other in pairs:
        one.setblocking(False)
        fds = [end.fileno() for pair in pairs for end in pair]
        try:
            socket.send_fds(one, [b"x" * 1000], fds[:250])
        except OSError:
            pass
    del pairs
"""

PIPES: Final = """\
import os
while True:
    try:
        reading, writing = os.pipe2(os.O_NONBLOCK)
        while os.write(writing, bytes(65536)):
            pass
    except OSError:
        pass
"""

TERMINALS: Final = """\
import os
while True:
    try:
        master, slave = os.openpty()
        os.set_blocking(master, False)
        os.set_blocking(slave, False)
        for end in (master, slave):
            try:
                while os.write(end, b"line\\n" * 1000):
                    pass
            except OSError:
                pass
    except OSError:
        pass
"""

LOCKS: Final = """\
import fcntl
with open("/tmp/locked", "w") as file:
    place = 0
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
        except OSError:
            pass
        place += 2
"""

POLL_MANY: Final = """\
import os, select
poller = select.poll()
for _ in range(450):
    for end in os.pipe():
        poller.register(end, select.POLLIN | select.POLLOUT)
while True:
    poller.poll(0)
"""

READV: Final = """\
import os
buffer = bytearray(4 << 20)
zero = os.open("/dev/zero", os.O_RDONLY)
null = os.open("/dev/null", os.O_WRONLY)
while True:
    os.readv(zero, [buffer] * 500)
    os.writev(null, [buffer] * 500)
"""

GETRANDOM: Final = """\
import os
while True:
    try:
        os.urandom(100 << 20)
    except (OSError, MemoryError):
        pass
"""

SENDFILE: Final = """\
import os
os.truncate(os.open("/tmp/holes", os.O_CREAT | os.O_RDWR), 1 << 40)
source = os.open("/tmp/holes", os.O_RDONLY)
null = os.open("/dev/null", os.O_WRONLY)
while True:
    os.sendfile(null, source, 0, 0x7FFFF000)
"""

COPY_RANGE: Final = """\
import os
source = os.open("/tmp/holes", os.O_CREAT | os.O_RDWR)
os.truncate(source, 1 << 40)
target = os.open("/tmp/copy", os.O_CREAT | os.O_RDWR)
while True:
    try:
        os.copy_file_range(source, target, 0x7FFFF000, 0, 0)
    except OSError:
        pass
"""

LARGE_DIRECTORY: Final = """\
import os
os.mkdir("d")
for number in range(15_000):
    os.close(os.open(f"d/{number:0200}", os.O_CREAT | os.O_WRONLY))
while True:
    os.listdir("d")
"""

DEEP_DIRECTORIES: Final = """\
import os
for _ in range(1_900):
    os.mkdir("d")
    os.chdir("d")
for number in range(5_000):
    os.close(os.open(f"{number}", os.O_CREAT | os.O_WRONLY))
"""

SYMLINKS: Final = """\
import os
os.mkdir("s0")
for level in range(1, 40):
    os.symlink(f"s{level - 1}/../s{level - 1}/../s{level - 1}/.", f"s{level}")
while True:
    for level in range(40):
        try:
            os.stat(f"s{level}/" * 100)
        except OSError:
            pass
"""

INTERLEAVED: Final = """\
import os
file = os.open("f", os.O_CREAT | os.O_RDWR)
for place in range(16_000):
    os.pwrite(file, b"x", place << 17)
while True:
    os.lseek(file, 0, os.SEEK_HOLE)
    os.lseek(file, 1 << 30, os.SEEK_DATA)
"""

HARD_LINKS: Final = "head -c 30M /dev/zero > f; for i in {1..200}; do ln f link$i; done"

_LINUX: Final = """
  (import "linux" "syscall" (func $call (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (global (export "__stack_pointer") (mut i32) (i32.const 65536))"""

GROW_AND_BLOCK: Final = f"""(module {_LINUX}
  (memory (export "memory") 2)
  (data (i32.const 1024) "/dev/zero\\00")
  (func (export "_start") (local $fd i32) (local $place i32)
    (drop (memory.grow (i32.const 2000)))
    (local.set $fd (call $call (i32.const 56) (i32.const -100) (i32.const 1024) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0)))
    (drop (call $call (i32.const 63) (local.get $fd) (i32.const 131072) (i32.const 131000000)
      (i32.const 0) (i32.const 0) (i32.const 0)))
    (local.set $fd (call $call (i32.const 59) (i32.const 2048) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0)))
    (drop (call $call (i32.const 63) (i32.load (i32.const 2048)) (i32.const 4096) (i32.const 1)
      (i32.const 0) (i32.const 0) (i32.const 0)))))"""
"""Grows its memory, lets the kernel write all of it, and waits on a pipe."""

TABLES: Final = f"""(module {_LINUX}
  (memory (export "memory") 2)
  (table $t 1 10000000 funcref)
  (func (export "_start")
    (loop $again
      (br_if $again (i32.ge_s (table.grow $t (ref.null func) (i32.const 100000)) (i32.const 0))))
    (drop (call $call (i32.const 59) (i32.const 2048) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0)))
    (drop (call $call (i32.const 63) (i32.load (i32.const 2048)) (i32.const 4096) (i32.const 1)
      (i32.const 0) (i32.const 0) (i32.const 0)))))"""

DEEP_STACK: Final = f"""(module {_LINUX}
  (memory (export "memory") 2)
  (func $deeper (param i64 i64 i64 i64) (result i64)
    (i64.add (call $deeper (i64.add (local.get 0) (local.get 1)) (local.get 2) (local.get 3)
      (local.get 0)) (local.get 1)))
  (func (export "_start") (drop (call $deeper (i64.const 1) (i64.const 2) (i64.const 3)
    (i64.const 4)))))"""

_DEPTH: Final = 4_000
NESTED_LOOPS: Final = f"""(module {_LINUX}
  (memory (export "memory") 1)
  (func (export "_start") (local $i i32)
    {"(loop (br_if 0 (i32.load (local.get $i)))" * _DEPTH}{")" * _DEPTH}))"""

MANY_FUNCTIONS: Final = f"""(module {_LINUX}
  (memory (export "memory") 1)
  {"(func (local i32 i64 f64) (loop (br_if 0 (i32.load (local.get 0)))))" * 20_000}
  (func (export "_start")))"""

COMPILE_AGAIN: Final = """\
import os, subprocess
for number in range(100_000):
    name = f"custom{number}".encode()
    section = bytes([len(name)]) + name
    with open("/tmp/module", "wb") as file:
        file.write(b"\\0asm\\1\\0\\0\\0" + bytes([0, len(section)]) + section)
    os.chmod("/tmp/module", 0o755)
    try:
        subprocess.run(["/tmp/module"], stderr=subprocess.DEVNULL)
    except OSError:
        pass
"""
"""Makes a new module each time, so that none is in the cache."""

SIGNAL_FLAG_OUTSIDE: Final = f"""(module {_LINUX}
  (memory (export "memory") 1)
  (global (export "__signal_flag") i32 (i32.const -16))
  (func (export "_start")
    (drop (call $call (i32.const 134) (i32.const 10) (i32.const 1024) (i32.const 0) (i32.const 8)
      (i32.const 0) (i32.const 0)))
    (loop $again
      (drop (call $call (i32.const 129)
        (call $call (i32.const 172) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
          (i32.const 0) (i32.const 0))
        (i32.const 10) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
      (br $again)))
  (data (i32.const 1024) "\\10\\00\\00\\00\\00\\00\\00\\00\\00\\00\\00\\00"))"""
"""Handles a signal with its signal flag outside its memory and without `__signal_run`."""
