"""A guest cannot harm the host: bombs of every kind, and the host's own exit."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from tests.engine.guests import call_host, program
from tests.engine.hosts import Host
from tests.host_process import resident_bytes
from wasmsand.engine.protocol import GuestTrap, GuestUnwind, TrapKind
from wasmsand.engine.wasmtime.engine import WasmtimeEngine

REPOSITORY = Path(__file__).resolve().parents[2]


def assert_healthy(engine: WasmtimeEngine) -> None:
    host = Host(engine)
    assert host.run_wat(program(f"(drop {call_host('(i32.const 1)')})")) is None
    assert len(host.calls) == 1


def test_recursion_with_large_frames_is_a_stack_overflow(
    engine: WasmtimeEngine, host: Host
) -> None:
    locals_ = " ".join(f"(local $v{i} v128)" for i in range(2000))
    use = " ".join(
        f"(local.set $v{i} (v128.load (i32.add (local.get 0) (i32.const {i}))))"
        for i in range(2000)
    )
    back = " ".join(f"(v128.store (i32.const {i}) (local.get $v{i}))" for i in range(2000))
    deep = f"(func $deep (param i32) {locals_} {use} (call $deep (local.get 0)) {back})"
    raised = host.run_wat(program("(call $deep (i32.const 0))", more=deep))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.STACK
    assert_healthy(engine)


def test_host_calls_work_at_the_deepest_point_of_a_recursion(engine: WasmtimeEngine) -> None:
    """Every 1,000th level makes a host call that itself recurses, until the stack is full."""

    def recurse(levels: int) -> int:
        return recurse(levels - 1) if levels else 0

    host = Host(engine, on_syscall=lambda *arguments: recurse(300))
    deep = f"""(func $deep (param $n i32)
      (if (i32.eqz (i32.rem_u (local.get $n) (i32.const 1000)))
        (then (drop {call_host("(i32.const 1)", "(local.get $n)")})))
      (call $deep (i32.add (local.get $n) (i32.const 1))))"""
    raised = host.run_wat(program("(call $deep (i32.const 0))", more=deep))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.STACK
    assert host.calls[-1][1] > 100_000
    assert_healthy(engine)


class _Counting(list[tuple[int, ...]]):
    """A list of calls that only counts them, for guests that make very many."""

    def append(self, call: tuple[int, ...]) -> None:
        pass


def test_endless_exceptions_are_collected_or_refused(engine: WasmtimeEngine) -> None:
    start = """(local $i i32) (loop $again
      (block $caught (try_table (catch_all $caught) (throw $oops (i64.const 1))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 200000))))"""
    host = Host(engine)
    raised = host.run_wat(program(start, more="(tag $oops (param i64))"), memory_limit=8 << 20)
    assert raised is None


def test_exceptions_that_are_kept_cannot_outgrow_the_memory_limit(
    engine: WasmtimeEngine, host: Host
) -> None:
    start = """(local $i i32) (loop $again
      (table.set $kept (local.get $i)
        (block $caught (result exnref)
          (try_table (catch_all_ref $caught) (throw $oops (i64.const 1))) (unreachable)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 131072))))"""
    more = "(tag $oops (param i64)) (table $kept 131072 exnref)"
    before = resident_bytes()
    raised = host.run_wat(program(start, more=more), memory_limit=4 << 20)
    assert isinstance(raised, GuestTrap), raised
    assert resident_bytes() - before < 64 << 20
    assert_healthy(engine)


def test_a_table_cannot_grow_without_end(host: Host) -> None:
    start = f"""(loop $again (br_if $again
        (i32.ge_s (table.grow $t (ref.null func) (i32.const 10000)) (i32.const 0))))
      (drop {call_host("(i32.const 1)", "(table.size $t)")})"""
    assert host.run_wat(program(start, more="(table $t 1 funcref)")) is None
    assert host.calls[0][1] <= 131_072


def test_ten_guests_computing_at_once_can_all_be_stopped(engine: WasmtimeEngine) -> None:
    class Killed(GuestUnwind):
        pass

    def tick() -> None:
        raise Killed

    hosts = [Host(engine, on_tick=tick) for _ in range(10)]
    threads = [
        threading.Thread(target=host.run_wat, args=(program("(loop $spin (br $spin))"),))
        for host in hosts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert all(isinstance(host.raised, Killed) for host in hosts)


def run_script(script: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a host process of its own."""
    prelude = f"""
        import os, sys, threading, time
        sys.path[:0] = [{str(REPOSITORY / "src")!r}, {str(REPOSITORY)!r}]
        os.environ["WASMSAND_CACHE"] = {str(cache)!r}
        from tests.engine.guests import call_host, forking, program
        from tests.engine.hosts import Host, load, on_guest_thread
        from wasmsand.engine import default_engine
        engine = default_engine()
        host = Host(engine)
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def check_exit_after(script: str, cache: Path) -> None:
    """A host that has run the script, which starts a guest, can exit."""
    leaving = 'time.sleep(0.1)\nprint("exiting", flush=True)\n'
    ended = run_script(textwrap.dedent(script) + leaving, cache)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "exiting\n", "")


@pytest.mark.parametrize(
    "start",
    ["(loop $spin (br $spin))", f"(loop $spin (drop {call_host('(i32.const 1)')}) (br $spin))"],
    ids=["computing", "calling"],
)
def test_the_host_can_exit_while_a_guest_runs(tmp_path: Path, start: str) -> None:
    check_exit_after(
        f"""
        from tests.engine.test_host_safety import _Counting
        host.calls = _Counting()
        instance = load(engine, program({start!r})).instantiate(1 << 20)
        instance.bind(host)
        def run():
            try:
                instance.run()
            except Exception:
                pass
        engine.start_thread(run)
        """,
        tmp_path,
    )


def test_the_host_can_exit_while_a_guest_waits(tmp_path: Path) -> None:
    check_exit_after(
        """
        host.on_syscall = lambda *a: time.sleep(3600)
        module = load(engine, program(f"(drop {call_host('(i32.const 1)')})"))
        instance = module.instantiate(1 << 20)
        instance.bind(host)
        engine.start_thread(instance.run)
        """,
        tmp_path,
    )


def test_fork_without_address_space_fails_inside_the_guest(tmp_path: Path) -> None:
    ended = run_script(
        """
        import resource
        assert host.run_wat(forking()) is None
        instance = load(engine, forking()).instantiate(1 << 20)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))
        host = Host(engine)
        assert host.run(instance) is None
        print(host.calls[0][1] - (1 << 32), host.children)
        kept = []
        try:
            for _ in range(9):
                kept.append(load(engine, forking()).instantiate(1 << 20))
        except MemoryError:
            print("MemoryError")
        """,
        tmp_path,
    )
    assert (ended.returncode, ended.stdout) == (0, "-12 []\nMemoryError\n"), ended.stderr


def test_fault_handlers_installed_later_do_not_let_a_guest_kill_the_host(tmp_path: Path) -> None:
    ended = run_script(
        """
        import faulthandler
        faulthandler.enable()
        for fault in ("(drop (i32.load (i32.const 0x7fffffff)))", "unreachable"):
            print(type(host.run_wat(program(fault))).__name__)
        """,
        tmp_path,
    )
    assert (ended.returncode, ended.stdout) == (0, "GuestTrap\nGuestTrap\n"), ended.stderr
    assert "faulthandler" in ended.stderr


def test_a_forked_host_process_gets_an_engine_of_its_own(tmp_path: Path) -> None:
    ended = run_script(
        """
        assert host.run_wat(forking(forks=2)) is None
        pid = os.fork()
        again = default_engine()
        assert (again is engine) == (pid != 0)
        host = Host(again)
        assert host.run_wat(forking(forks=2)) is None
        assert len(host.family()) == 4
        assert host.run_wat(program("nop" if pid else "nop nop")) is None  # compiles in each
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
            print("both ran")
        """,
        tmp_path,
    )
    assert (ended.returncode, ended.stdout) == (0, "both ran\n"), ended.stderr
