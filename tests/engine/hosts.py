"""The hosts in the engine's tests, which answer the calls of guests.

`Host` records what happens; a test gives it behaviour by passing functions.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wasmsand.engine.protocol import Arguments, Instance
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.instance import WasmtimeInstance
from wasmsand.engine.wasmtime.module import WasmtimeModule

MEMORY_LIMIT = 64 << 20
PATIENCE = 30.0


def key_of(wasm: bytes) -> str:
    return hashlib.sha256(wasm).hexdigest()


def load(engine: WasmtimeEngine, program: str | bytes) -> WasmtimeModule:
    """The module of a program, given as text or as bytes."""
    wasm = program if isinstance(program, bytes) else wat_to_wasm(program)
    return engine.load(key_of(wasm), lambda: wasm)


def on_guest_thread(engine: WasmtimeEngine, job: Callable[[], None]) -> BaseException | None:
    """Run `job` on a thread of the pool and wait; returns what it raised."""
    ended = threading.Event()
    raised: list[BaseException] = []

    def work() -> None:
        try:
            job()
        except BaseException as error:
            raised.append(error)
        finally:
            ended.set()

    engine.start_thread(work)
    assert ended.wait(PATIENCE), "the guest did not end"
    return raised[0] if raised else None


@dataclass
class Host:
    """Answers one guest's calls and records them; its forked children are in `children`."""

    engine: WasmtimeEngine
    on_syscall: Callable[..., int] = lambda *arguments: 0
    on_tick: Callable[[], None] = lambda: None
    on_fork_allowed: Callable[[], int] = lambda: 0
    pid: int = 100
    calls: list[tuple[int, ...]] = field(default_factory=list)
    function_calls: list[tuple[Callable[..., Any], tuple[int, ...]]] = field(default_factory=list)
    children: list[Host] = field(default_factory=list)
    ticks: int = 0
    raised: BaseException | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    instance: WasmtimeInstance | None = None

    @property
    def realm(self) -> object:
        return self.engine

    def syscall(self, nr: int, arguments: Arguments) -> int:
        v = arguments
        call = (nr, v.a, v.b, v.c, v.d, v.e, v.f)
        self.calls.append(call)
        return self.on_syscall(*call)

    def invoke(self, handler: Callable[..., Any], *arguments: int) -> int:
        self.function_calls.append((handler, arguments))
        return int(handler(*arguments))

    def tick(self) -> None:
        self.ticks += 1
        self.on_tick()

    def fork_allowed(self) -> int:
        return self.on_fork_allowed()

    def fork_failed(self) -> None:
        pass

    def fork_child(self, child: Instance) -> int:
        assert isinstance(child, WasmtimeInstance)
        pid = self.pid + len(self.children) + 1
        host = type(self)(
            self.engine, self.on_syscall, self.on_tick, self.on_fork_allowed, pid=pid * 100
        )
        host.instance = child
        self.children.append(host)
        child.bind(host)
        self.engine.start_thread(lambda: host._run_child(child))
        return pid

    def run(self, instance: WasmtimeInstance) -> BaseException | None:
        """Run the guest and its children to their ends, and close it; returns what `run` raised."""
        self.instance = instance
        instance.bind(self)
        self.raised = on_guest_thread(self.engine, instance.run)
        instance.close()
        for host in self.family():
            if host is not self:
                assert host.ended.wait(PATIENCE), "a child did not end"
        return self.raised

    def run_wat(self, wat: str, memory_limit: int = MEMORY_LIMIT) -> BaseException | None:
        return self.run(load(self.engine, wat).instantiate(memory_limit))

    def family(self) -> list[Host]:
        """This host, and the hosts of all children that were ever forked."""
        found = [self]
        for host in found:
            if host is not self:
                host.ended.wait(PATIENCE)
            found.extend(host.children)
        return found

    def _run_child(self, child: WasmtimeInstance) -> None:
        try:
            child.run()
        except BaseException as error:
            self.raised = error
        finally:
            child.close()
            self.ended.set()


def run_and_close(instance: WasmtimeInstance, host: Host) -> Exception | None:
    """Run a guest on this thread, and close it however it ends; returns what `run` raised."""
    instance.bind(host)
    try:
        instance.run()
    except Exception as error:
        return error
    finally:
        instance.close()
    return None


def run_at_once(module: WasmtimeModule, hosts: Sequence[Host]) -> None:
    """Run a guest for each host, all at the same time, to the end."""
    threads = [
        threading.Thread(target=host.run, args=(module.instantiate(1 << 20),)) for host in hosts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
