"""Where guests of a JavaScript host get their programs.

Owns `WebModules`, a `ModuleSource`. Rules: the programs of the image are fetched and compiled by
the host while other guests run; everybody who waits for one is woken by its queue. Programs that
guests have written are compiled here, at once, after a check of their size. The hash of a fetched
file is checked by the host before it is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, NoReturn

from wasmsand.engine.javascript.engine import JavaScriptEngine, JavaScriptImage
from wasmsand.engine.javascript.host import ModuleForm
from wasmsand.engine.protocol import Engine, Instance, Module, ModuleRejected
from wasmsand.kernel.limits import GUEST_MODULE_BYTES_MAX, IO_CHUNK
from wasmsand.kernel.process.program import Program
from wasmsand.kernel.process.thread import Thread
from wasmsand.kernel.wait import WaitQueue, WouldBlock
from wasmsand.machine.image_directory import prepared_program
from wasmsand.machine.loading import require_one_abi
from wasmsand.machine.module_source import ProgramRejected
from wasmsand.web.host import WebHost

_GUEST_MODULES_MAX: Final = 8
"""How many modules of guests stay compiled; running programs keep theirs."""


class WebModules:
    """The programs of one machine."""

    def __init__(self, engine: JavaScriptEngine, host: WebHost) -> None:
        self.engine: Engine = engine
        self._programs = engine
        self._host = host
        self._wanted: dict[str, WaitQueue] = {}
        """What is being fetched, by its hash."""
        self._failed: dict[str, str] = {}
        self._of_guests: dict[str, None] = {}
        """Modules that guests have written, the one that was compiled last at the end."""
        self._images: dict[str, JavaScriptImage] = {}
        """Stored memories, by hash."""

    # ModuleSource.

    def module(self, thread: Thread, program: Program) -> Module:
        """See `ModuleSource`."""
        key = program.content_key or self._hash(program)
        module: Module | None = self._programs.find(key)
        if module is None:
            if program.of_image:
                self._require(program, key)
                self._fetch(key, self._host.fetch_module)
            module = self._compile(program, key)
        memory = program.memory_key
        if memory is not None and memory not in self._images:
            self._require(program, memory)
            self._fetch(memory, self._host.fetch_memory)
        return module

    def shared_bytes(self, program: Program) -> int:
        """Nothing is shared."""
        return 0

    def abandon(self, thread: Thread) -> None:
        """What is being fetched stays wanted: others will want it too."""

    def instantiate(self, program: Program, module: Module, memory_limit: int) -> Instance:
        """See `ModuleSource`."""
        if program.memory_key is None:
            return module.instantiate(memory_limit)
        return self._images[program.memory_key].instantiate(module, memory_limit)

    # What the host has fetched.

    def module_fetched(self, key: str, form: ModuleForm) -> None:
        """The host has compiled a module."""
        try:
            require_one_abi(self._programs.keep(key, form))
        except ModuleRejected as error:
            self.failed(key, str(error))
            return
        self._arrived(key)

    def memory_fetched(self, key: str, image: int) -> None:
        """The host has a stored memory, which it knows by this number."""
        prepared = prepared_program(key).prepared
        assert prepared is not None  # it was found by its memory
        self._images[key] = JavaScriptImage(self._programs, image, prepared.memory)
        self._arrived(key)

    def failed(self, key: str, problem: str) -> None:
        """Something could not be fetched or compiled: those who wait for it fail, and the next
        start tries again."""
        self._failed[key] = problem
        self._arrived(key)

    def _arrived(self, key: str) -> None:
        queue = self._wanted.pop(key, None)
        if queue is not None:
            queue.wake()

    # Helpers.

    def _fetch(self, key: str, fetch: Callable[[str], None]) -> NoReturn:
        queue = self._wanted.get(key)
        if queue is None:
            queue = self._wanted[key] = WaitQueue()
            fetch(key)
        raise WouldBlock((queue,), interruptible=False)

    def _require(self, program: Program, key: str) -> None:
        problem = self._failed.pop(key, None)
        if problem is not None:
            raise ProgramRejected(program, problem)

    def _hash(self, program: Program) -> str:
        if program.size > GUEST_MODULE_BYTES_MAX:
            raise ProgramRejected(program, f"larger than {GUEST_MODULE_BYTES_MAX} bytes")
        digest = hashlib.sha256(self._content(program))
        program.keep_key(digest.hexdigest())
        return digest.hexdigest()

    def _compile(self, program: Program, key: str) -> Module:
        if program.size > GUEST_MODULE_BYTES_MAX:
            raise ProgramRejected(program, f"larger than {GUEST_MODULE_BYTES_MAX} bytes")
        try:
            module = self.engine.load(key, lambda: self._content(program))
            require_one_abi(module)
        except ModuleRejected as error:
            raise ProgramRejected(program, str(error)) from error
        self._of_guests[key] = None
        if len(self._of_guests) > _GUEST_MODULES_MAX:
            oldest = next(iter(self._of_guests))
            del self._of_guests[oldest]
            self._programs.unload(oldest)
        return module

    def _content(self, program: Program) -> bytes:
        pieces, at = [], 0
        while at < program.size:
            piece = program.read(at, min(IO_CHUNK, program.size - at))
            if not piece:
                raise ProgramRejected(program, "changed while it was loaded")
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces)
