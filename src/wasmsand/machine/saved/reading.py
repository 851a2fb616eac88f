"""Loads a saved machine.

Owns `SavedMachine`. Rules: the file may come from anybody. Its parts go through the same doors as a
guest's: files are created through the kernel, which charges them; memory is written only into the
memory of an instance; a process is checked field by field. What is unpacked is bounded by the
limits of the sandbox that loads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import IO, Any, Final

from wasmsand.engine import default_engine
from wasmsand.engine.dormant import DormantFork, DormantProgram
from wasmsand.engine.protocol import Engine, ModuleRejected
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.flags import S_IFCHR, S_IFDIR, S_IFMT, S_IFREG
from wasmsand.kernel.limits import (
    ARCHIVE_HEADERS_PER_ENTRY,
    IMAGE_ENTRIES_MAX,
    MIB,
    PATH_MAX,
    PID_MAX,
    STACK_UNCHARGED_MAX,
    Limits,
)
from wasmsand.kernel.vfs import ROOT, Node
from wasmsand.machine.at_rest import MachineState
from wasmsand.machine.disk_image import DiskImageRejected, read_tree
from wasmsand.machine.machine import Machine, MachineOptions
from wasmsand.machine.mounts.table import MountState
from wasmsand.machine.saved.base import BaseImage, base_for
from wasmsand.machine.saved.checked import Fields, checked_bytes, checked_integer, checked_integers
from wasmsand.machine.saved.framing import (
    FILES,
    MEMORY,
    PROCESS,
    FrameReader,
    parse_object,
    read_header,
)
from wasmsand.machine.saved.problems import StateRejected, TooLarge
from wasmsand.machine.saved.processes import process_from
from wasmsand.machine.saved.writing import ADDRESS
from wasmsand.machine.sessions import CapturedSession
from wasmsand.machine.tar_source import PieceSource

_WORD: Final = (1 << 32) - 1
_HASH: Final = 64
_NEEDS_MAX: Final = 10_000
_VARIABLES_MAX: Final = 100_000
_TEXT_MAX: Final = 16 * MIB
_GLOBALS_MAX: Final = 10_000
_REMOVAL_BYTES: Final = 1024
"""Average bytes of a removed path of the image in a file."""
_TYPES: Final = {"file": S_IFREG, "directory": S_IFDIR, "device": S_IFCHR}


class SavedMachine:
    """A file that is being loaded."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Read the header. Raises `StateRejected`."""
        self._stream = stream
        fields = Fields(read_header(stream), "header")
        self._codec = fields.text("codec", 20)
        self.needs: Mapping[str, str] = fields.strings("needs", _NEEDS_MAX, _HASH)
        self.variables: Mapping[str, str] = fields.strings("variables", _VARIABLES_MAX, _TEXT_MAX)
        self.cwd = fields.text("cwd", PATH_MAX)
        if not self.cwd.startswith("/") or "\0" in self.cwd:
            raise StateRejected("damaged: header.cwd is wrong")
        self.about = fields.fields("about")
        """The part of the header that belongs to the caller of `write_machine`."""

    def load(
        self,
        options: MachineOptions,
        base: BaseImage | None = None,
        engine: Engine | None = None,
        *,
        only_files: bool = False,
    ) -> tuple[MachineState, list[CapturedSession]]:
        """The state, for machines with these options, and its sessions. With `only_files`, sessions
        are left out, and the image may be another. Raises `StateRejected`, and what `base_for`
        raises."""
        engine = engine or default_engine()
        base = base or base_for(options, engine)
        if not only_files:
            base.require(self.needs)
        quiet = replace(options, network=None, packages=(), mounts=())
        machine = Machine(quiet, image=base.tree, variables={}, cwd=self.cwd, engine=engine)
        sessions: list[CapturedSession] = []
        try:
            frame = FrameReader(self._stream, self._codec, _most(options.limits))
            places = _Places(machine, _read_files(machine, frame))
            if only_files:
                _skip_sessions(frame)
            else:
                _read_sessions(frame, places, base, engine, options.limits, sessions)
            frame.finish()
            _check_numbers(sessions)
            state = machine.state()
        except BaseException:
            for session in sessions:
                session.instance.close()
            raise
        finally:
            machine.close()
        tree = replace(state.tree, held=places.used & state.tree.orphans)
        mounts = tuple(MountState(request) for request in options.mounts)
        loaded = replace(state, options=options, tree=tree, variables=self.variables, mounts=mounts)
        return loaded, sessions

    def load_files(self, machine: Machine) -> None:
        """Load the files into a new machine, on any image. Raises `StateRejected`; then the machine
        has a part of them."""
        frame = FrameReader(self._stream, self._codec, _most(machine.kernel.limits))
        _read_files(machine, frame)
        _skip_sessions(frame)
        frame.finish()


def _read_files(machine: Machine, frame: FrameReader) -> dict[int, Node]:
    """Create the files. Returns those without a name, retained."""
    try:
        held = read_tree(machine, PieceSource(frame.pieces(FILES)))
    except DiskImageRejected as rejected:
        kind = TooLarge if rejected.is_full else StateRejected
        raise kind(f"cannot load the files: {rejected}") from None
    for _ in frame.pieces(FILES):
        pass  # the padding of the archive
    return held


def _skip_sessions(frame: FrameReader) -> None:
    while frame.peek() in (PROCESS, MEMORY):
        frame.take(frame.peek())


def _read_sessions(
    frame: FrameReader,
    places: _Places,
    base: BaseImage,
    engine: Engine,
    limits: Limits,
    sessions: list[CapturedSession],
) -> None:
    budget = _Budget(limits.memory_limit_bytes)
    while frame.peek() == PROCESS:
        if len(sessions) >= limits.max_processes:
            raise TooLarge("more sessions than max_processes")
        sessions.append(_session(frame, places, base, engine, limits, budget))


def _most(limits: Limits) -> int:
    """The most bytes that a body unpacks to."""
    entries = limits.max_inodes * ARCHIVE_HEADERS_PER_ENTRY + IMAGE_ENTRIES_MAX * _REMOVAL_BYTES
    return limits.fs_limit_bytes + entries + 2 * limits.memory_limit_bytes + 64 * MIB


def _check_numbers(sessions: list[CapturedSession]) -> None:
    numbers = [
        number
        for session in sessions
        for number in (session.process.pid, session.process.ended_child)
        if number is not None
    ]
    if len(set(numbers)) != len(numbers):
        raise StateRejected("damaged: two processes have the same number")


class _Budget:
    """How many bytes of memory may still be loaded."""

    def __init__(self, limit: int) -> None:
        self._left = self._limit = limit

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise TooLarge(
                f"the sessions have more memory than {self._limit} bytes; raise memory_limit_bytes"
            )


class _Places:
    """Inodes by the values that stand for them."""

    def __init__(self, machine: Machine, held: Mapping[int, Node]) -> None:
        self._machine = machine
        self._held = held
        self.used: frozenset[int] = frozenset()
        """The inodes that were asked for."""

    def save(self, ino: int) -> object:
        raise NotImplementedError  # for writing only

    def find(self, value: object, kind: str) -> int:
        fields = Fields(value, "place")
        kernel = self._machine.kernel
        with self._machine.lock:
            namespace = kernel.namespace
            if "held" in fields:
                node = self._held.get(checked_integer(fields.value("held"), 0, _WORD, "held"))
                if node is None:
                    raise StateRejected("damaged: a file without a name is missing")
            else:
                path = checked_bytes(fields.value("path"), PATH_MAX - 2, "path")
                try:
                    node = namespace.resolve(ROOT, namespace.root, b"/" + path, follow=False)
                except KernelError:
                    raise StateRejected("damaged: an open file is missing") from None
            if node.fs is not kernel.root:
                raise StateRejected("damaged: an open file is not in the file system")
            type_bits = namespace.stat(node).mode & S_IFMT
        if type_bits != _TYPES.get(kind, type_bits):
            raise StateRejected("damaged: an open file is of another type")
        self.used |= {node.ino}
        return node.ino


def _session(
    frame: FrameReader,
    places: _Places,
    base: BaseImage,
    engine: Engine,
    limits: Limits,
    budget: _Budget,
) -> CapturedSession:
    values: dict[str, Any] = parse_object(frame.take(PROCESS))
    fields = Fields(values, "session")
    process = process_from(fields.fields("process"), places, limits)
    dormant = DormantProgram(
        module_key=fields.text("module", _HASH),
        entry=fields.text("entry", 255),
        memory_size=fields.integer("memory_size", 0, _WORD + 1),
        variables=fields.numbers("variables", _GLOBALS_MAX, _WORD),
        fork=_fork(fields),
    )
    memory_key = fields.text("memory", _HASH) if "memory" in fields else None
    most = limits.memory_limit_bytes + STACK_UNCHARGED_MAX
    try:
        instance = base.new_instance(engine, dormant.module_key, memory_key, most)
    except ModuleRejected as error:
        raise StateRejected(str(error)) from None
    except MemoryError as error:
        raise TooLarge(str(error)) from None
    try:
        parts = _parts(frame, budget)
        engine.abilities.memory_copies.fill(instance, dormant, parts)
    except ModuleRejected as error:
        instance.close()
        raise StateRejected(f"damaged: the program {error}") from None
    except MemoryError as error:
        instance.close()
        raise TooLarge(f"{error}; raise memory_limit_bytes") from None
    except BaseException:
        instance.close()
        raise
    return CapturedSession(process, instance)


def _fork(fields: Fields) -> DormantFork | None:
    if "fork" not in fields:
        return None
    buffer, result = checked_integers(fields.value("fork"), [(0, _WORD), (0, PID_MAX)], "fork")
    return DormantFork(buffer, result)


def _parts(frame: FrameReader, budget: _Budget) -> Iterator[tuple[int, bytes]]:
    for data in frame.pieces(MEMORY):
        if len(data) < ADDRESS.size:
            raise StateRejected("damaged: a part of a memory without an address")
        budget.spend(len(data))
        yield ADDRESS.unpack_from(data)[0], data[ADDRESS.size :]
