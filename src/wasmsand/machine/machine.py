"""One sandbox's machine: image, kernel and engine.

Owns `Machine`, from creation to close. Rules: creating a machine starts no thread and reads nothing
from disk except `wasm_dir`; closing it ends every process; `lock` guards all kernel state.
"""

from __future__ import annotations

import os
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wasmsand.abi.wasi.table import HOST_FUNCTIONS
from wasmsand.engine import default_engine
from wasmsand.engine.protocol import Engine, Module
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.terminal import Terminal
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.captured import CapturedStream, revive
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.program import Program
from wasmsand.kernel.process.thread import Thread
from wasmsand.kernel.process.timers import fire_timers
from wasmsand.kernel.vfs import FrozenTree, TreeFs
from wasmsand.kernel.wait import WouldBlock
from wasmsand.machine.at_rest import MachineState, forget_terminals, state_of
from wasmsand.machine.charging import adopt_program
from wasmsand.machine.command import (
    CommandRequest,
    Completed,
)
from wasmsand.machine.files import SandboxFiles
from wasmsand.machine.guest import Guest
from wasmsand.machine.host_process import USER, new_process
from wasmsand.machine.image import base_image, image_with_wasm_programs
from wasmsand.machine.launch import steadily
from wasmsand.machine.loading import ModuleLoader
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.mounts.table import MachineMounts, MountState
from wasmsand.machine.network.bridge import Bridge
from wasmsand.machine.parking import Parker
from wasmsand.machine.renewal import prepared_memories
from wasmsand.machine.running import run_command
from wasmsand.machine.sessions import CapturedSession
from wasmsand.machine.streamed import StreamedProcess
from wasmsand.machine.terminal import SandboxTerminal
from wasmsand.machine.thread_driver import ThreadDriver
from wasmsand.machine.timers import TimerOwner, TimerService
from wasmsand.machine.uncounted import Deadline, UncountedTime
from wasmsand.machine.wasm_programs import WasmProgram, find_wasm_programs

if TYPE_CHECKING:
    from wasmsand.machine.mounts.table import MountRequest
    from wasmsand.machine.network.forwarding import PortForwarding
    from wasmsand.machine.network.inspecting.authority import Authority
    from wasmsand.machine.network.policy import NetworkPolicy

_LARGE_BYTES: Final = 32 << 20
"""When a machine that used more than this is closed, freed memory is returned to the system."""


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """How a machine is made."""

    limits: Limits = field(default_factory=Limits)
    hostname: str = "sandbox"
    wasm_dir: Path | None = None
    """A host directory whose `*.wasm` files become commands (see `wasm_programs`)."""
    packages: tuple[str, ...] = ()
    """Requirements of Python packages that are installed from the start (see `packages`)."""
    network: NetworkPolicy | None = None
    """What the sandbox may reach; None: nothing."""
    mounts: tuple[MountRequest, ...] = ()
    """What is mounted from the start (see `mounts`)."""


_timer_services: dict[int, TimerService] = {}


def timer_service(engine: Engine, clock: Clock) -> TimerService:
    """The timer service for a clock. All machines on the host's time share one service per
    engine."""
    if not clock.is_of_host:
        return TimerService(engine.start_thread, clock)
    service = _timer_services.get(id(engine))
    if service is None:
        service = _timer_services.setdefault(id(engine), TimerService(engine.start_thread))
    return service


class Machine:
    """One sandbox of this process: its files, processes and terminals."""

    def __init__(
        self,
        options: MachineOptions | None = None,
        *,
        image: FrozenTree | None = None,
        variables: Mapping[str, str] | None = None,
        cwd: str = "/",
        engine: Engine | None = None,
        clock: Clock | None = None,
        mounts: Sequence[MountState] | None = None,
        authority: Authority | None = None,
    ) -> None:
        """`image` is the tree to start from (default: the built user space), `variables` and `cwd`
        are what commands start with, `engine` runs the programs (default: the engine that all
        machines of this process share), `clock` is the sandbox's time, `mounts` is mounted in place
        of `options.mounts`, `authority` is the certificate authority of the machine that this one
        is a copy of.

        Raises `WasmProgramRejected` if a file in `wasm_dir` is not a usable program, and
        `PackageProblem` if a package cannot be installed. If `image` is given, `wasm_dir` and
        `packages` are not read. Raises `MountProblem` if a directory cannot be mounted.
        """
        self.options = options = options or MachineOptions()
        self.variables: dict[str, str] = dict(variables or {})
        """The sandbox's environment variables. The machine stores them as a part of its state; the
        caller puts them into each `CommandRequest`."""
        self.cwd = cwd
        self.lock = SandboxLock()
        self.engine: Engine = engine or default_engine()
        self.engine.offer(HOST_FUNCTIONS)
        self.identity = USER
        clock = clock or Clock()
        self.uncounted = UncountedTime(clock)
        self._loader = ModuleLoader(
            self.engine, self.lock, prepared_memories(self.engine), self.uncounted
        )
        if image is None:
            image = _image_of(options, self.engine, self.identity)
        root = TreeFs(image, options.limits, clock.realtime)
        self.kernel = Kernel(root, options.limits, clock=clock, hostname=options.hostname.encode())
        self.kernel.interrupt = self.engine.interrupt
        self.bridge = Bridge(self.lock, self.kernel, options.network, authority)
        owner = weakref.ref(self)
        self.timers = timers = timer_service(self.engine, clock)

        def timer_armed(when_ns: int) -> None:
            machine = owner()
            if machine is not None:
                timers.arm(machine, when_ns)

        self.kernel.timer_armed = timer_armed
        # The hooks reference parts, not self: an unreferenced machine must be collectable.
        watchers: dict[int, Callable[[], None]] = {}
        guests: dict[int, Guest] = {}
        self._watchers = watchers
        self.guests = guests
        """The programs that the host has started, by pid."""

        def process_ended(process: Process) -> None:
            guests.pop(process.pid, None)
            watcher = watchers.pop(process.pid, None)
            if watcher is not None:
                watcher()

        self.kernel.process_ended = process_ended
        self.closed = False
        self.files = SandboxFiles(self)
        self._ports: PortForwarding | None = None
        self._finalizer = weakref.finalize(self, _abandon, self.kernel, self.lock, os.getpid())
        self._finalizer.atexit = False
        self.mounts: MachineMounts = MachineMounts(self)
        if mounts is None:
            mounts = [MountState(request) for request in options.mounts]
        for mount in mounts:
            self.mounts.mount(mount.request, mount.content)

    @classmethod
    def from_state(
        cls, state: MachineState, *, engine: Engine | None = None, clock: Clock | None = None
    ) -> Machine:
        """Create a machine from a state. A state can be used any number of times. No program
        runs."""
        machine = cls(
            state.options,
            image=state.tree,
            variables=state.variables,
            cwd=state.cwd,
            engine=engine,
            clock=clock,
            mounts=state.mounts,
            authority=state.authority,
        )
        forget_terminals(machine)
        return machine

    def state(self, captured: Sequence[CapturedSession] = ()) -> MachineState:
        """The sandbox's current state as one value. Guests keep running. A machine that is created
        from it must adopt the programs that were `captured`."""
        return state_of(self, captured)

    def run(
        self, request: CommandRequest, on_started: Callable[[int], None] | None = None
    ) -> Completed:
        """Run a program to its end and capture its output. `on_started` receives its job number
        (see `end_job`) when it runs."""
        return run_command(self, request, on_started)

    def start(self, request: CommandRequest) -> StreamedProcess:
        """Start a program with streams between it and the host."""
        return StreamedProcess.of_request(self, request)

    def adopt(self, session: CapturedSession, *, is_last: bool = False) -> StreamedProcess:
        """Let a copy of a captured session run here. `is_last`: no other machine will get one.
        Raises `KernelError`."""
        self.mounts.look_again()
        return StreamedProcess.of_session(self, session, is_last=is_last)

    def open_terminal(
        self, request: CommandRequest, rows: int = 24, columns: int = 80
    ) -> SandboxTerminal:
        """Run a program on a pseudo-terminal, which is its standard input and output."""
        return SandboxTerminal(self, request, rows, columns)

    def make_process(
        self,
        request: CommandRequest,
        files: Mapping[int, OpenFile],
        on_end: Callable[[], None],
        *,
        terminal: Terminal | None = None,
        deadline: Deadline | None = None,
    ) -> ThreadDriver:
        """Create a process for the requested program with these files, by descriptor, without
        running it (see `ThreadDriver.run`). `on_end` is called under the lock.

        Raises `TimeoutError` if the program is still being compiled at `deadline`.
        """
        self.mounts.look_again()
        with self.lock:
            guest = new_process(
                self.kernel,
                self._loader,
                request,
                files,
                load=partial(self._load, deadline=deadline),
                is_closed=lambda: self.closed,
                terminal=terminal,
            )
            self._watchers[guest.process.pid] = on_end
            return self._driver_of(guest.process, guest)

    def _driver_of(self, process: Process, guest: Guest) -> ThreadDriver:
        self.guests[process.pid] = guest
        return ThreadDriver(self.lock, guest)

    def revive_process(
        self,
        session: CapturedSession,
        stream: Callable[[CapturedStream], OpenFile],
        on_end: Callable[[], None],
        *,
        is_last: bool = False,
    ) -> ThreadDriver:
        """Create a copy of a captured process, without running it. `stream` makes its streams to
        the host. `is_last`: the session is not needed any longer, so its memory can be used. Needs
        the lock. Raises `KernelError`."""
        kernel = self.kernel
        if self.closed:
            raise KernelError(Errno.ESRCH, "the machine was closed")
        try:
            instance = session.instance if is_last else session.duplicate(self)
        except MemoryError as error:
            raise KernelError(Errno.ENOMEM, str(error)) from error
        try:
            memory = adopt_program(kernel, self.engine, instance)
            process = revive(kernel, session.process, stream)
        except BaseException:
            instance.close()
            raise
        process.leave_memory(memory)
        self._watchers[process.pid] = on_end
        guest = Guest(kernel, self._loader, process.first_thread, instance, memory)
        return self._driver_of(process, guest)

    def _load(self, thread: Thread, program: Program, *, deadline: Deadline | None) -> Module:
        """The program's module. The lock is released while it is compiled."""
        parker = Parker(self.lock, self.kernel.clock)
        while True:
            try:
                return self._loader.module(thread, program)
            except WouldBlock as block:
                until = None if deadline is None else deadline.next_look_ns
                parker.park((*block.queues, thread.signal_queue), until)
            if thread.dead:
                raise KernelError(Errno.EINTR, "the machine was closed")
            if deadline is not None and deadline.is_past:
                raise TimeoutError

    def change(self, act: Callable[[], object]) -> None:
        """Call `act`, which changes the machine's state, so that no signal handler of the host can
        interrupt it. An exception that a handler raises is raised afterwards."""
        steadily(self.engine, self.lock, act)

    @property
    def ports(self) -> PortForwarding:
        """Connections of the host to servers in the sandbox."""
        if self._ports is None:
            # Imported here, because most sandboxes have no servers.
            from wasmsand.machine.network.forwarding import PortForwarding

            made = PortForwarding(self.kernel, self.lock, self.bridge.log)
            with self.lock:
                self._ports = self._ports or made
            if self.closed:
                self._ports.close()
        return self._ports

    def end_job(self, job: int) -> None:
        """End every process of a command."""
        steadily(self.engine, self.lock, partial(_end_job, self.kernel, self.lock, job))

    def call_at(self, owner: TimerOwner, when_ns: int) -> Callable[[], None]:
        """Call `owner.fire_timers` at `when_ns` on the monotonic clock. The returned function
        cancels the timer."""
        self.timers.arm(owner, when_ns)
        return partial(self.timers.cancel, owner)

    def fire_timers(self) -> int | None:
        """Called by the timer service."""
        with self.lock:
            return fire_timers(self.kernel)

    def close(self) -> None:
        """End every process; idempotent."""
        self.closed = True
        if self._ports is not None:
            self._ports.close()
        if self._finalizer.detach() is not None:
            if len(self.kernel.processes) > 1:
                steadily(self.engine, self.lock, partial(_end_everything, self.kernel, self.lock))
            self.mounts.close()
            self._loader.cancel()  # last, so that no process sees it fail
            if self.kernel.ledger.peak + self.kernel.root.space.used_bytes > _LARGE_BYTES:
                self.engine.abilities.give_memory_back()
            self.timers.cancel(self)


def _image_of(options: MachineOptions, engine: Engine, user: Identity) -> FrozenTree:
    """The tree that a new machine starts from."""
    programs: tuple[WasmProgram, ...] = ()
    if options.wasm_dir is not None:
        programs = find_wasm_programs(options.wasm_dir, engine)
    if options.packages:
        # Imported here, because most sandboxes have no packages.
        from wasmsand.machine.packages.offered import image_with_packages

        return image_with_packages(options.packages, user.credentials(), programs)
    return base_image() if options.wasm_dir is None else image_with_wasm_programs(programs)


def _end_job(kernel: Kernel, lock: SandboxLock, job: int) -> None:
    with lock:
        kernel.kill_job(job)


def _end_everything(kernel: Kernel, lock: SandboxLock) -> None:
    with lock:
        kernel.kill_all()


def _abandon(kernel: Kernel, lock: SandboxLock, owner: int) -> None:
    """The machine was garbage-collected. The collector may run on a thread that holds the lock, so
    a new thread takes the lock. In a forked host process nothing of the machine runs, so there is
    nothing to end."""
    if os.getpid() == owner:
        start_new_thread(_end_everything, (kernel, lock))
