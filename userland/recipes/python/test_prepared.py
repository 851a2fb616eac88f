"""Python as it starts from its checkpoint: everything that depends on a start is of that start."""

from __future__ import annotations

import pytest

from userland.recipes.screen import Screen
from wasmsand import Sandbox
from wasmsand.machine import Machine

PLAIN = "/usr/libexec/python3-plain"


def run(sandbox: Sandbox, script: str) -> str:
    """What bash and the programs that it starts print; all of it must go well."""
    result = sandbox.commands.run(script)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_arguments_and_names(sandbox: Sandbox) -> None:
    code = "import sys; print(sys.argv, sys.orig_argv[1:2], sys.executable, sys.path[0] == '')"
    assert run(sandbox, f'python3 -c "{code}" a -b') == (
        "['-c', 'a', '-b'] ['-c'] /usr/bin/python3 True\n"
    )
    sandbox.files.write("dir/script.py", "import sys; print(sys.argv, sys.path[0], __file__)")
    assert run(sandbox, "python dir/script.py x") == (
        "['dir/script.py', 'x'] /home/user/dir /home/user/dir/script.py\n"
    )
    assert run(sandbox, "cd dir; python3 -m script y").startswith("['/home/user/dir/script.py',")
    assert run(sandbox, "echo 'import sys; print(sys.argv)' | python3 - z") == "['-', 'z']\n"
    assert run(sandbox, "echo 'print(__name__)' | python3") == "__main__\n"


def test_the_environment_is_that_of_the_start(sandbox: Sandbox) -> None:
    code = "import os; print(os.environ.get('A'), os.environb[b'HOME'], os.getcwd())"
    assert run(sandbox, f'cd /tmp; A=b python3 -c "{code}"') == "b b'/home/user' /tmp\n"
    assert run(sandbox, f'python3 -c "{code}"') == "None b'/home/user' /home/user\n"


def test_the_time_and_its_zone_are_those_of_the_start(sandbox: Sandbox) -> None:
    code = (
        "import time, datetime; zone = datetime.datetime.now().astimezone().tzname(); "
        "print(time.tzname[0], zone in ('CET', 'CEST', 'UTC'))"
    )
    assert run(sandbox, f'TZ=Europe/Berlin python3 -c "{code}"') == "CET True\n"
    assert run(sandbox, f'python3 -c "{code}"') == "UTC True\n"
    code = "import time; print(abs(time.time() - $(date +%s)) < 60)"
    assert run(sandbox, f'python3 -c "{code}"') == "True\n"


def test_random_numbers_differ_from_start_to_start(sandbox: Sandbox) -> None:
    for code in (
        "import random; print(random.random())",
        "import random; print(random.Random().random())",
        "import secrets; print(secrets.token_hex())",
        "import uuid; print(uuid.uuid4())",
        "import tempfile; print(tempfile.mktemp())",
        "import os; print(os.urandom(8))",
    ):
        command = f'python3 -c "{code}"'
        assert run(sandbox, command) != run(sandbox, command)


def test_process_ids_are_those_of_the_start(sandbox: Sandbox) -> None:
    code = "import os, threading; print(os.getpid() == threading.main_thread().native_id > 1)"
    assert run(sandbox, f'python3 -c "{code}"') == "True\n"


def test_a_fresh_interpreter_shows_no_modules_but_the_usual(sandbox: Sandbox) -> None:
    code = "import sys; print([m for m in ('json', 're', 'random', 'asyncio') if m in sys.modules])"
    assert run(sandbox, f'python3 -c "{code}"') == "[]\n"


def test_files_beside_a_script_hide_the_library(sandbox: Sandbox) -> None:
    sandbox.files.write("random.py", "x = 'mine'\n")
    sandbox.files.write("main.py", "import random; print(random.x)\n")
    assert run(
        sandbox, "python3 main.py; cd /; python3 -c 'import random; print(random.__file__)'"
    ) == ("mine\n/usr/lib/python3.14/random.py\n")


def test_modules_look_as_if_they_were_imported_now(sandbox: Sandbox) -> None:
    code = """
import sys, importlib, inspect, json, logging, concurrent
print(type(json.__spec__.loader).__name__, json.__spec__ is not None, json.decoder.__name__)
print("json.decoder" in sys.modules, "re" in sys.modules, hasattr(concurrent, "futures"))
print(inspect.getsource(json.dumps).splitlines()[0])
again = importlib.reload(json)
print(again is json)
del sys.modules["json"]
import json as fresh
print(fresh is json)
import concurrent.futures
print(concurrent.futures.Future.__name__)
print(logging.LogRecord("a", 1, "b", 1, "c", (), None).relativeCreated < 60_000)
"""
    sandbox.files.write("look.py", code)
    assert run(sandbox, "python3 look.py").splitlines() == [
        "SourceFileLoader True json.decoder",
        "True True False",
        "def dumps(obj, *, skipkeys=False, ensure_ascii=True, check_circular=True,",
        "True",
        "False",
        "Future",
        "True",
    ]


def test_the_search_path_follows_its_variables_and_directories(sandbox: Sandbox) -> None:
    sandbox.files.write("lib/mod.py", "v = 5\n")
    assert run(
        sandbox, "PYTHONPATH=lib python3 -c 'import mod, sys; print(mod.v, sys.path[:2])'"
    ) == ("5 ['', '/home/user/lib']\n")
    site = ".local/lib/python3.14/site-packages"
    sandbox.files.write(f"{site}/own.py", "v = 6\n")
    sandbox.files.write(f"{site}/more.pth", "/home/user/lib\n")
    assert run(sandbox, "python3 -c 'import own, mod; print(own.v, mod.v)'") == "6 5\n"


def test_streams_are_those_of_the_start(sandbox: Sandbox) -> None:
    code = (
        "import sys; o = sys.stdout; print(o.encoding, o.errors, o.line_buffering, o.write_through)"
    )
    assert run(sandbox, f'python3 -c "{code}"') == "utf-8 surrogateescape False False\n"
    assert run(sandbox, f'python3 -u -c "{code}"') == "utf-8 surrogateescape False True\n"
    assert run(sandbox, f'PYTHONUNBUFFERED=1 python3 -c "{code}"').endswith("True\n")
    assert run(sandbox, f'LANG=en_US.UTF-8 python3 -c "{code}"').startswith("utf-8 strict")
    assert run(sandbox, f'PYTHONIOENCODING=latin-1 python3 -c "{code}"').startswith("iso8859-1 str")
    assert run(sandbox, "python3 -c 'print(1)' >&-") == ""
    assert run(sandbox, "python3 -c 'import sys; print(sys.stdin)' <&-") == "None\n"


def test_signals_are_those_of_the_start(sandbox: Sandbox) -> None:
    code = "from signal import *; print(getsignal(SIGINT), getsignal(SIGPIPE), getsignal(SIGTERM))"
    assert run(sandbox, f'python3 -c "{code}"') == "<built-in function default_int_handler> 1 0\n"
    assert run(sandbox, f"trap '' INT TERM; python3 -c '{code}'") == "1 1 1\n"
    result = sandbox.commands.run("python3 -c 'import os; os.kill(os.getpid(), 2)'")
    assert result.exit_code == 130
    assert result.stderr.endswith("KeyboardInterrupt\n")


def test_the_end_is_that_of_any_interpreter(sandbox: Sandbox) -> None:
    code = """
import atexit, os, sys
class Tidy:
    def __del__(self):
        print("finaliser", os.getpid() > 0)
tidy = Tidy()
cycle = [tidy]; cycle.append(cycle)
unclosed = open("unclosed", "w"); unclosed.write("data")
atexit.register(print, "atexit")
print("unflushed", end=" ")
sys.exit(3)
"""
    sandbox.files.write("end.py", code)
    result = sandbox.commands.run("python3 end.py; echo $?; cat unclosed")
    assert result.stdout == "unflushed atexit\nfinaliser True\n3\ndata"
    result = sandbox.commands.run("python3 -c 'print(1)' > /dev/full")
    assert result.exit_code == 120
    assert result.stderr.count("No space left on device") == 1
    result = sandbox.commands.run("python3 -c '1/0'")
    assert result.exit_code == 1
    assert result.stderr.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ("python3 -O -c 'print(__debug__)'", "False\n"),
        ("python3 -I -c 'import sys; print(sys.flags.isolated)'", "1\n"),
        ("python3 -X utf8 -c 'import sys; print(sys.flags.utf8_mode)'", "1\n"),
        ("python3 -W error -c 'import sys; print(sys.warnoptions)'", "['error']\n"),
        ("PYTHONOPTIMIZE=2 python3 -c 'import sys; print(sys.flags.optimize)'", "2\n"),
        ("PYTHONHASHSEED=0 python3 -c 'import sys; print(sys.flags.hash_randomization)'", "0\n"),
        ("LC_ALL=C python3 -c 'import sys; print(sys.flags.utf8_mode)'", "1\n"),
        (
            "ln -s /usr/bin/python3 py; ./py -c 'import sys; print(sys.executable)'",
            "/home/user/py\n",
        ),
        ("python3 -B -c 'import sys; print(sys.dont_write_bytecode, sys.flags[4])'", "True 1\n"),
        ("python3 -V", "Python 3.14.7\n"),
        (
            "python3 -h | head -n 1 | cut -c -20; python -h | head -c 14",
            "usage: python3 [opti\nusage: python ",
        ),
        (
            "mkdir bin; ln -s /usr/bin/python3 bin/python3x; PATH=bin:$PATH python3x -c 'print(1)'",
            "1\n",
        ),
    ],
)
def test_options_are_followed_or_left_to_the_plain_interpreter(
    sandbox: Sandbox, command: str, stdout: str
) -> None:
    assert run(sandbox, command) == stdout


def test_wrong_options_are_complained_about(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("python3 -Z")
    assert result.exit_code == 2
    assert result.stderr.startswith("Unknown option: -Z\nusage: python3 ")
    result = sandbox.commands.run("python3 missing.py")
    assert (result.exit_code, result.stderr) == (
        2,
        "python3: can't open file '/home/user/missing.py': [Errno 2] No such file or directory\n",
    )


def test_hashes_can_be_made_to_differ(sandbox: Sandbox) -> None:
    """All starts from the checkpoint have one seed; a variable asks for another one."""
    command = "python3 -c 'print(hash(\"a\"))'"
    assert run(sandbox, command) == run(sandbox, command)
    random = f"PYTHONHASHSEED=random {command}"
    assert run(sandbox, random) != run(sandbox, random)


def test_the_plain_interpreter_is_the_same_program(sandbox: Sandbox) -> None:
    code = "import sys; print(sys.version, sys.path, sys.prefix)"
    assert run(sandbox, f'python3 -c "{code}"') == run(sandbox, f'{PLAIN} -c "{code}"')


def test_a_terminal_gets_a_dialogue(machine: Machine) -> None:
    with Screen(machine, "python3") as screen:
        screen.wait_for(">>>")
        screen.type("40 + 2\r")
        screen.wait_for("42")
        screen.type("exit()\r")
        assert screen.wait_for_exit() == 0


def test_threads_start_from_the_checkpoint_too(sandbox: Sandbox) -> None:
    code = """
import threading
seen = []
threads = [threading.Thread(target=seen.append, args=(n,)) for n in range(5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(seen), len({thread.native_id for thread in threads}))
"""
    sandbox.files.write("threads.py", code)
    assert run(sandbox, "python3 threads.py") == "[0, 1, 2, 3, 4] 5\n"


def test_what_processes_share_is_not_charged_to_each(sandbox: Sandbox) -> None:
    """See tests/limits/test_shared_memory.py."""
    with sandbox.python() as session:
        session.run("1")
        [process] = [p for p in sandbox.commands.list() if p.pid == session.pid]
        assert 1 << 20 < process.memory_bytes < 10 << 20
