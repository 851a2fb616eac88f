"""Threads of CPython: its lock is passed on, what waits overlaps, and they end with it."""

from __future__ import annotations

import time
from textwrap import dedent

import pytest

from wasmsand import Sandbox


def run(sandbox: Sandbox, code: str) -> str:
    """What a program prints that must go well."""
    result = sandbox.commands.run(["python3", "-c", dedent(code)])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_what_threads_wait_for_overlaps(sandbox: Sandbox) -> None:
    code = """
        import threading, time
        began = time.monotonic()
        threads = [threading.Thread(target=time.sleep, args=(0.5,)) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(time.monotonic() - began < 3)
    """
    assert run(sandbox, code) == "True\n"


def test_threads_that_compute_all_get_on(sandbox: Sandbox) -> None:
    code = """
        import threading, time
        turns, ended = [0, 0, 0], False
        def count(number):
            while not ended: turns[number] += 1
        threads = [threading.Thread(target=count, args=(n,)) for n in range(3)]
        for thread in threads: thread.start()
        limit = time.monotonic() + 20
        while not all(turns) and time.monotonic() < limit: time.sleep(0.01)
        ended = True
        for thread in threads: thread.join()
        print(all(turns))
    """
    assert run(sandbox, code) == "True\n"


def test_pools_queues_and_tasks_in_threads(sandbox: Sandbox) -> None:
    code = """
        import asyncio, queue, threading
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(4) as pool:
            print(sum(pool.map(lambda n: n * n, range(100))))

        items, taken = queue.Queue(maxsize=3), []
        def take():
            while (item := items.get()) is not None: taken.append(item)
        consumer = threading.Thread(target=take)
        consumer.start()
        for item in [*range(50), None]: items.put(item)
        consumer.join()
        print(len(taken))

        async def main():
            return await asyncio.gather(*(asyncio.to_thread(pow, 2, n) for n in range(5)))
        print(asyncio.run(main()))
    """
    assert run(sandbox, code) == "328350\n50\n[1, 2, 4, 8, 16]\n"


def test_each_thread_has_a_local_of_its_own_and_a_number(sandbox: Sandbox) -> None:
    code = """
        import os, threading
        own = threading.local()
        own.value = 1
        seen = []
        def look(): seen.append((hasattr(own, "value"), threading.get_native_id() != os.getpid()))
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        print(seen, threading.get_native_id() == os.getpid())
    """
    assert run(sandbox, code) == "[(False, True)] True\n"


def test_threads_start_programs(sandbox: Sandbox) -> None:
    code = """
        import subprocess
        from concurrent.futures import ThreadPoolExecutor
        def say(n): return subprocess.check_output(["echo", str(n)], text=True).strip()
        with ThreadPoolExecutor(4) as pool: print(*pool.map(say, range(8)))
    """
    assert run(sandbox, code) == "0 1 2 3 4 5 6 7\n"


def test_a_thread_that_recurses_for_ever_gets_an_exception(sandbox: Sandbox) -> None:
    code = """
        import threading
        def deeper(n): return deeper(n + 1)
        def begin():
            try: deeper(0)
            except RecursionError: print("RecursionError")
        thread = threading.Thread(target=begin)
        thread.start()
        thread.join()
    """
    assert run(sandbox, code) == "RecursionError\n"


def test_the_interrupt_key_reaches_the_main_thread(sandbox: Sandbox) -> None:
    code = """
        import os, signal, threading, time
        def interrupt():
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try: time.sleep(30)
        except KeyboardInterrupt: print("interrupted")
    """
    assert run(sandbox, code) == "interrupted\n"


@pytest.mark.parametrize("work", ["while True: pass", "time.sleep(1000)"])
def test_daemon_threads_end_with_the_program(sandbox: Sandbox, work: str) -> None:
    code = f"""
        import threading, time
        def work():
            {work}
        for _ in range(3): threading.Thread(target=work, daemon=True).start()
        print("done")
    """
    assert run(sandbox, code) == "done\n"


def test_the_time_limit_ends_all_threads(sandbox: Sandbox) -> None:
    code = """
        import threading
        def work():
            while True: pass
        for _ in range(3): threading.Thread(target=work).start()
    """
    began = time.monotonic()
    result = sandbox.commands.run(["python3", "-c", dedent(code)], timeout_ms=2000)
    assert result.exit_code == 124
    assert time.monotonic() - began < 30
    assert sandbox.commands.run("pgrep -c python3").stdout == "0\n"


def test_ps_shows_threads(sandbox: Sandbox) -> None:
    code = """
        import os, subprocess, threading
        ended = threading.Event()
        threads = [threading.Thread(target=ended.wait) for _ in range(3)]
        for thread in threads: thread.start()
        print(len(os.listdir("/proc/self/task")))
        count = subprocess.check_output(["ps", "-o", "nlwp=", "-p", str(os.getpid())], text=True)
        print(count.strip())
        ended.set()
    """
    assert run(sandbox, code) == "4\n4\n"
