"""Hosts that fork, get signals and exit: each test has a host process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
SECONDS = 120
"""Seconds: a hang would last for ever."""

PRELUDE = """\
import gc, os, signal, subprocess, sys, threading, time, warnings
from wasmsand import *
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from 3.12 on

def in_child(act):
    "Fork; the child ends with what `act` returns, or 9. The parent waits for it."
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        status = 9
        try:
            status = int(act() or 0)
        except BaseException as error:
            print("child:", repr(error), flush=True)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def refused(act):
    try:
        act()
    except ForkedError as error:
        assert "belongs to the process that created it" in str(error), error
        return True
    return False
"""


def run_host(script: str, *, expect: int | None = 0) -> str:
    """Run a script as a host; returns what it printed."""
    ended = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if expect is not None:
        assert ended.returncode == expect, (ended.returncode, ended.stdout, ended.stderr)
    return ended.stdout


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_child_cannot_use_inherited_sandboxes_and_leaves_them_alone(isolation: str) -> None:
    output = run_host(
        f"""
        def make(): return Sandbox(isolation={isolation!r})
        sandbox = make()
        shell, python, command = sandbox.shell(), sandbox.python(), sandbox.commands.start("cat")
        watch, pool = sandbox.files.watch("/tmp"), SandboxPool(1, make=make)
        # Threads of the parent hold what there is to be held.
        for act in (lambda: sandbox.commands.run("while :; do :; done", timeout_ms=60_000),
                    lambda: shell.run("sleep 60"), lambda: python.run("while True: pass"),
                    lambda: command.wait(timeout_ms=60_000)):
            threading.Thread(target=act, daemon=True).start()
        time.sleep(1)

        def child():
            uses = [lambda: sandbox.commands.run("true"), lambda: sandbox.files.write("a", "b"),
                    lambda: sandbox.files.read("/etc/passwd"), sandbox.usage, sandbox.shell,
                    sandbox.python, lambda: shell.run("true"), lambda: python.run("1"),
                    command.wait, command.poll, lambda: command.write_stdin("x"),
                    command.close_stdin, lambda: next(iter(command)), watch.poll, pool.take,
                    lambda: sandbox.env.set("A", "b"), lambda: sandbox.files.download("/tmp", "x")]
            print([refused(use) for use in uses].count(False), flush=True)
            with sandbox.__class__() as fresh:
                print(fresh.commands.run("echo fresh").stdout, end="", flush=True)
            repr([sandbox, shell, python, command, pool])
            sandbox.kill(); shell.close(); python.close()
            command.kill(); pool.close(); watch.close()
            for name in ("sandbox", "shell", "python", "command", "watch", "pool"):
                del globals()[name]
            gc.collect()
            time.sleep(0.3)

        print("child ended with", in_child(child))
        print(sandbox.commands.run("echo parent").stdout, end="")
        command.write_stdin("x")
        """
    )
    assert output == "0\nfresh\nchild ended with 0\nparent\n"


def test_a_child_makes_sandboxes_whatever_locks_other_threads_held() -> None:
    """Another thread holds every lock of our modules while the host forks."""
    output = run_host(
        """
        import _thread, asyncio, wasmsand.sdk.async_calls, wasmsand.http.backend
        import wasmsand.rpc.backend
        with Sandbox() as sandbox:
            sandbox.commands.run("echo $(python3 -c 'print(1)')")
        async def use():
            async with AsyncSandbox() as sandbox:
                return (await sandbox.commands.run("echo in a loop")).stdout
        asyncio.run(use())
        kinds = (_thread.LockType, _thread.RLock)
        locks = [value for name, module in list(sys.modules.items()) if name.startswith("wasmsand")
                 for value in list(vars(module).values()) if isinstance(value, kinds)]
        from wasmsand.engine.wasmtime import threads
        held, let_go = threading.Event(), threading.Event()
        def hold():
            for lock in {id(lock): lock for lock in locks}.values():
                lock.acquire()
            threads._usual_stack_size = threading.stack_size(1 << 20)
            held.set()
            let_go.wait()
        threading.Thread(target=hold, daemon=True).start()
        held.wait()

        def child():
            names = [(name, key) for name, module in list(sys.modules.items())
                     if name.startswith("wasmsand") for key, value in list(vars(module).items())
                     if isinstance(value, kinds) and not value.acquire(False)]
            print(names, threading.stack_size(), flush=True)
            for name, module in list(sys.modules.items()):
                for value in list(vars(module).values()) if name.startswith("wasmsand") else ():
                    if isinstance(value, kinds):
                        value.release()
            with Sandbox() as sandbox:
                result = sandbox.commands.run("echo $(echo a | tr a b); python3 -c 'print(2)'")
                print(result.stdout.split(), flush=True)
            print(asyncio.run(use()), end="", flush=True)

        print(len(locks) >= 5, in_child(child))
        """
    )
    assert output == "[] 0\n['b', '2']\nin a loop\nTrue 0\n"


def test_forks_while_guests_start_in_other_threads() -> None:
    output = run_host(
        """
        import random
        stop = threading.Event()
        def work():
            while not stop.is_set():
                with Sandbox() as sandbox:
                    sandbox.commands.run("echo $(echo a | cat); ls / > /dev/null & wait")
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(1)

        def child():
            with Sandbox() as sandbox:
                good = sandbox.commands.run("echo $(echo b)").stdout == "b\\n"
            gc.collect()
            return 0 if good else 1

        bad = 0
        for _ in range(25):
            time.sleep(random.random() * 0.02)
            bad += in_child(child) != 0
        stop.set()
        print("bad:", bad)
        """
    )
    assert output == "bad: 0\n"


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(method: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    # A separate script, because forkserver and spawn import the main module again.
    path = tmp_path_factory.mktemp("host") / "host.py"
    path.write_text(
        textwrap.dedent(
            f"""
            import multiprocessing, warnings
            from wasmsand import Sandbox
            warnings.simplefilter("ignore", DeprecationWarning)

            def work(number):
                with Sandbox() as sandbox:
                    return sandbox.commands.run(f"echo {{number}}").stdout.strip()

            if __name__ == "__main__":
                with Sandbox() as before:
                    before.commands.run("true")
                    with multiprocessing.get_context({method!r}).Pool(2) as pool:
                        print(pool.map(work, range(4)))
                    print(before.commands.run("echo still").stdout, end="")
            """
        )
    )
    ended = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.stdout == "['0', '1', '2', '3']\nstill\n", ended.stderr


def test_a_server_that_forks_its_workers_after_it_has_made_a_sandbox() -> None:
    output = run_host(
        """
        shared = Sandbox()
        shared.commands.run("true")
        workers = []
        for number in range(3):
            pid = os.fork()
            if pid == 0:
                own = Sandbox()
                good = refused(lambda: shared.commands.run("true"))
                good = good and own.commands.run("echo on").stdout == "on\\n"
                sys.exit(0 if good else 1)  # with everything that runs at exit
            workers.append(pid)
        print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in workers])
        print(shared.commands.run("echo parent").stdout, end="")
        """
    )
    assert output == "[0, 0, 0]\nparent\n"


def test_a_child_that_exits_takes_nothing_of_its_parent_with_it() -> None:
    output = run_host(
        """
        sandbox = Sandbox(isolation="process")
        held = sandbox.commands.start("cat")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)  # finalizers, atexit
        print(os.waitpid(pid, 0)[1])
        held.write_stdin("on\\n")
        print(next(iter(held)).text, end="")
        """
    )
    assert output == "0\non\n"


def test_programs_started_with_preexec_fn() -> None:
    output = run_host(
        """
        with Sandbox() as sandbox:
            script = "for i in $(seq 200); do echo $(echo $i); done"
            thread = threading.Thread(target=sandbox.commands.run, args=(script,))
            thread.start()
            for _ in range(30):
                subprocess.run(["true"], preexec_fn=lambda: None, check=True, timeout=30)
            thread.join()
            print(sandbox.commands.run("echo on").stdout, end="")
        """
    )
    assert output == "on\n"


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_keyboard_interrupt_at_any_moment_leaves_the_sandbox_usable(isolation: str) -> None:
    output = run_host(
        f"""
        import random
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        sandbox = Sandbox(isolation={isolation!r})
        sandbox.commands.run("true")
        hits = 0
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, random.random() * 0.004 + 1e-6)
                while True:
                    sandbox.commands.run("echo $(echo a | cat)")
            except KeyboardInterrupt:
                hits += 1
            assert sandbox.commands.run("echo on").stdout == "on\\n"
        for _ in range(500):
            if not sandbox.usage().processes:
                break
            time.sleep(0.01)
        print(hits, sandbox.usage().processes)
        """
    )
    assert output == "300 0\n"


def test_a_keyboard_interrupt_at_any_moment_leaves_files_whole() -> None:
    output = run_host(
        """
        import random
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        sandbox = Sandbox()
        files, errors, hits = sandbox.files, [], 0
        def work():
            try:
                while True:
                    files.write("f", b"x" * 5000); files.read("f"); files.rename("f", "g")
                    files.rm("g"); files.write("d/e/f", "1"); files.rm("d", recursive=True)
            except SandboxError as error:
                errors.append(error)
        for _ in range(1500):
            try:
                signal.setitimer(signal.ITIMER_REAL, random.random() * 0.002 + 1e-6)
                work()
                time.sleep(60)
            except KeyboardInterrupt:
                hits += 1
            for name in ("f", "g", "d"):
                try:
                    files.rm(name, recursive=True)
                except NotFoundError:
                    pass
        print(hits, errors, sandbox.commands.run("find .").stdout, end="")
        """
    )
    assert output == "1500 [] .\n"


def test_a_keyboard_interrupt_in_sessions_and_waits_leaves_them_usable() -> None:
    output = run_host(
        """
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        def interrupted(act):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.5)
                act()
            except KeyboardInterrupt:
                return True
            return False
        with Sandbox() as sandbox:
            shell, python = sandbox.shell(), sandbox.python()
            command = sandbox.commands.start("sleep 1000")
            acts = [lambda: shell.run("sleep 1000"), lambda: python.run("while True: pass"),
                    command.wait, lambda: command.write_stdin(bytes(10**6)),
                    lambda: sandbox.commands.run("sleep 1000")]
            print([interrupted(act) for act in acts])
            print(shell.run("echo on").stdout, python.run("1 + 1").value, command.poll())
        """
    )
    assert output == "[True, True, True, True, True]\non\n 2 None\n"


@pytest.mark.parametrize(
    "ending", ["pass", "sys.exit(0)", "os._exit(0)", "raise SystemExit(0)", "del sandbox"]
)
@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_host_exits_while_guests_run(isolation: str, ending: str) -> None:
    began = time.monotonic()
    output = run_host(
        f"""
        sandbox = Sandbox(isolation={isolation!r})
        for script in ("while :; do :; done", "sleep 1000", "yes", "cat /dev/urandom | sha256sum",
                       "python3 -c 'while True: pass'"):
            threading.Thread(target=sandbox.commands.run, args=(script,),
                             kwargs={{"timeout_ms": 10**6}}, daemon=True).start()
        command = sandbox.commands.start("yes")
        shell = sandbox.shell()
        time.sleep(1)
        print("exit", flush=True)
        {ending}
        """
    )
    assert output == "exit\n"
    assert time.monotonic() - began < 60


def test_a_host_that_is_terminated_while_guests_run_ends() -> None:
    script = PRELUDE + textwrap.dedent(
        """
        sandbox = Sandbox()
        threading.Thread(target=sandbox.commands.run, args=("yes",), daemon=True).start()
        time.sleep(0.5)
        print("on", flush=True)
        sandbox.commands.run("while :; do :; done", timeout_ms=10**6)
        """
    )
    for number in (signal_number("SIGTERM"), signal_number("SIGINT")):
        with subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as host:
            assert host.stdout is not None
            assert host.stdout.readline() == b"on\n"
            time.sleep(0.5)
            host.send_signal(number)
            assert host.wait(SECONDS) in (-number, 130, 1)


def signal_number(name: str) -> int:
    import signal

    return int(getattr(signal, name))
