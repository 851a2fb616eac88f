"""CPython: what is built in, what it starts, how it ends. Programs as they are written every day
are compared with the native ones in tests/differential/cases/python.sh."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from userland.recipes.screen import Screen
from wasmsand import Sandbox
from wasmsand.machine import Machine


def run(sandbox: Sandbox, code: str) -> str:
    """What a program prints that must go well."""
    result = sandbox.commands.run(["python3", "-c", code])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_it_is_linux_on_wasm32(sandbox: Sandbox) -> None:
    code = "import sys, os; print(sys.platform, os.uname().machine, sys.version_info[:2])"
    assert run(sandbox, code) == "linux wasm32 (3, 14)\n"
    names = "python --version; python3 --version; python3.14 --version"
    assert sandbox.commands.run(names).stdout == "Python 3.14.7\n" * 3


def test_it_knows_its_c_library(sandbox: Sandbox) -> None:
    recipe = tomllib.loads((Path(__file__).parents[1] / "musl/recipe.toml").read_text("utf-8"))
    code = "import platform; print(*platform.libc_ver())"
    assert run(sandbox, code) == f"musl {recipe['version']}\n"


@pytest.mark.parametrize(
    "module",
    [
        "asyncio",
        "bz2",
        "compression.zstd",
        "ctypes",
        "curses",
        "dbm.sqlite3",
        "decimal",
        "hashlib",
        "lzma",
        "mmap",
        "multiprocessing.synchronize",
        "pyexpat",
        "readline",
        "resource",
        "select",
        "socket",
        "sqlite3",
        "ssl",
        "termios",
        "unicodedata",
        "zlib",
        "zoneinfo",
    ],
)
def test_a_module_of_the_library_is_there(sandbox: Sandbox, module: str) -> None:
    assert run(sandbox, f"import {module}") == ""


def test_the_library_can_be_read(sandbox: Sandbox) -> None:
    found = sandbox.commands.run("find /usr/lib/python3* -name argparse.py").stdout
    assert found == "/usr/lib/python3.14/argparse.py\n"
    code = "import inspect, json; print(inspect.getsource(json.loads).splitlines()[0])"
    assert run(sandbox, code).startswith("def loads(s, ")
    failed = sandbox.commands.run(["python3", "-c", "import json; json.loads('{')"])
    assert 'File "/usr/lib/python3.14/json/__init__.py", line' in failed.stderr
    assert "    return _default_decoder.decode(s)\n" in failed.stderr


def test_hashes_of_passwords(sandbox: Sandbox) -> None:
    code = "import hashlib; print(hashlib.pbkdf2_hmac('sha256', b'password', b'salt', 2, 20).hex())"
    assert run(sandbox, code) == "ae4d0c95af6b46d32d0adff928f06dd02a303f8e\n"


def test_hashes_are_those_of_openssl_but_where_its_own_are_faster(sandbox: Sandbox) -> None:
    names = "h.md5, h.sha1, h.sha256, h.sha512"
    code = f"import hashlib as h; print(*(f.__module__ for f in ({names})))"
    assert run(sandbox, code) == "_hashlib _hashlib _sha2 _hashlib\n"
    assert run(sandbox, "import hashlib as h; print(len(h.__all__) - len({*h.__all__}))") == "0\n"


def test_the_spawn_functions_of_os(sandbox: Sandbox) -> None:
    code = """
import os
print(os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", "exit 3"]))
print(os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "kill -9 $$"), os.spawnlp(os.P_WAIT, "none", "x"))
for name in "sh", "none":
    arguments = ["sh", "-c", "exit $X"]
    pid = os.spawnvpe(os.P_NOWAIT, name, arguments, {"X": "7", "PATH": "/none:/bin"})
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert run(sandbox, code) == "3\n-9 127\n7\n127\n"


def test_the_shell_of_asyncio(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo 'await asyncio.sleep(0, 42)' | python3 -m asyncio")
    assert result.exit_code == 0
    assert "42" in result.stdout
    result = sandbox.commands.run("python3 -m asyncio ps 1")
    assert result.exit_code == 1
    assert result.stderr == "this Python cannot look into other processes\n"


def test_there_is_no_fork_and_it_says_so(sandbox: Sandbox) -> None:
    code = "import os, multiprocessing as m; print(hasattr(os, 'fork'), m.get_all_start_methods())"
    assert run(sandbox, code) == "False ['spawn']\n"
    failed = sandbox.commands.run(["python3", "-c", "import os; os.fork()"])
    assert "AttributeError: module 'os' has no attribute 'fork'" in failed.stderr


def test_programs_that_a_user_installs_go_to_usr_local(sandbox: Sandbox) -> None:
    show = "import sysconfig as s; print(*(s.get_path(n) for n in ('purelib', 'scripts', 'data')))"
    assert run(sandbox, show) == "/usr/lib/python3.14/site-packages /usr/local/bin /usr/local\n"
    other = "import sysconfig as s; print(s.get_path('scripts', vars={'base': '/tmp/x'}))"
    assert run(sandbox, other) == "/tmp/x/bin\n"
    sandbox.commands.run("python3 -m venv --without-pip /tmp/venv")
    result = sandbox.commands.run(["/tmp/venv/bin/python3", "-c", show])
    assert result.stdout == "/tmp/venv/lib/python3.14/site-packages /tmp/venv/bin /tmp/venv\n"


def test_the_user_can_write_where_packages_are_installed(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "touch /usr/lib/python3.14/site-packages/mine.py /usr/local/bin/mine && "
        "ln -sfn /usr/libexec/python3-plain /etc/alternatives/python3 && "
        "python3 -c 'import mine, os; print(os.readlink(\"/proc/self/exe\"))'"
    )
    assert (result.stdout, result.stderr) == ("/usr/libexec/python3-plain\n", "")


def test_a_copy_of_the_interpreter_starts_from_the_beginning(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("cp /usr/libexec/python3 copy && ./copy -c 'print(1 + 1)'")
    assert (result.stdout, result.stderr) == ("2\n", "")


def test_a_child_shares_files_pipes_and_signals_with_the_shell(sandbox: Sandbox) -> None:
    sandbox.files.write("sum.py", "import sys; print(sum(map(int, sys.stdin)))")
    result = sandbox.commands.run("seq 10 | python3 sum.py | sed 's/^/total /' > out; cat out")
    assert result.stdout == "total 55\n"
    result = sandbox.commands.run("python3 -c 'while True: print(1)' | head -n 1; echo done")
    assert result.stdout == "1\ndone\n"


def test_semaphores_are_shared_by_processes(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "count.py",
        "import multiprocessing as mp\n"
        "def add(lock, name, times):\n"
        "    for _ in range(times):\n"
        "        with lock:\n"
        "            n = int(open(name).read()); open(name, 'w').write(str(n + 1))\n"
        "if __name__ == '__main__':\n"
        "    open('n', 'w').write('0'); lock = mp.Lock()\n"
        "    ps = [mp.Process(target=add, args=(lock, 'n', 50)) for _ in range(3)]\n"
        "    [p.start() for p in ps]; [p.join() for p in ps]\n"
        "    print(open('n').read())\n",
    )
    assert sandbox.commands.run("python3 count.py; ls /dev/shm").stdout == "150\n"


def test_values_and_arrays_are_shared_by_processes(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "count.py",
        "import multiprocessing as mp\n"
        "def add(total, squares, i):\n"
        "    squares[i] = i * i\n"
        "    for _ in range(20):\n"
        "        with total.get_lock(): total.value += 1\n"
        "if __name__ == '__main__':\n"
        "    total = mp.Value('i', 100); squares = mp.Array('d', 3)\n"
        "    ps = [mp.Process(target=add, args=(total, squares, i)) for i in range(3)]\n"
        "    [p.start() for p in ps]; [p.join() for p in ps]\n"
        "    print(total.value, squares[:])\n",
    )
    assert sandbox.commands.run("python3 count.py").stdout == "160 [0.0, 1.0, 4.0]\n"


def test_threads_share_the_interpreter(sandbox: Sandbox) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor as E; import time; t = time.time()\n"
        "with E(8) as e: list(e.map(time.sleep, [0.3] * 8))\n"
        "print(time.time() - t < 2)"
    )
    assert run(sandbox, code) == "True\n"


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_dialogue_on_a_terminal(machine: Machine, term: str) -> None:
    with Screen(machine, "python3", term) as screen:
        screen.wait_for(">>>")
        screen.type("x = 6\r")
        screen.type("print(x * 7)\r")
        screen.wait_until(lambda lines: "42" in lines)
        # The words are printed when it really runs, not when they are typed.
        screen.type("for _ in iter(lambda: print('run' + 'ning'), 1): exec('while True: pass')\r\r")
        screen.wait_for("running")
        screen.type("\x03")
        screen.wait_for("KeyboardInterrupt")
        screen.type("exit(3)\r")
        assert screen.wait_for_exit() == 3
