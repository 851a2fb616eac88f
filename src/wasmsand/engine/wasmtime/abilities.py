"""The abilities of the wasmtime engine.

Owns the adapters from the interfaces in `engine/abilities.py` to this engine's own instances.
Rules: an object of another engine is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wasmsand.engine import abilities
from wasmsand.engine.dormant import DormantProgram
from wasmsand.engine.protocol import BEGINNING, Instance, Module
from wasmsand.engine.stored_memory import StoredMemory
from wasmsand.engine.wasmtime import dormant_memory
from wasmsand.engine.wasmtime.compile_cache import CompileCache
from wasmsand.engine.wasmtime.instance import WasmtimeInstance
from wasmsand.engine.wasmtime.layered_image import share_memory
from wasmsand.engine.wasmtime.memory_image import MappedImage, found_image, opened_image
from wasmsand.engine.wasmtime.module import WasmtimeModule
from wasmsand.engine.wasmtime.touched_pages import page_faults


class WasmtimeThreads:
    """See `abilities.ProgramThreads`."""

    def new_thread(self, program: Instance, stack_pointer: int, argument: int) -> WasmtimeInstance:
        """Create another thread of the program."""
        assert isinstance(program, WasmtimeInstance)
        return program.new_thread(stack_pointer, argument)

    def catch_up(self, thread: Instance) -> None:
        """Update the size of the memory."""
        assert isinstance(thread, WasmtimeInstance)
        thread.catch_up()


class WasmtimeImages:
    """See `abilities.MemoryImages`. For systems that can map a file over a memory; others use the
    stand-in."""

    available = True

    def __init__(self, cache: CompileCache) -> None:
        self._cache = cache

    def find(self, stored: StoredMemory) -> MappedImage | None:
        """The image of a file that was checked before."""
        return found_image(stored, self._cache)

    def load(self, stored: StoredMemory) -> MappedImage:
        """Check a file, and return its image."""
        return opened_image(stored, self._cache)

    def capture(
        self, program: Instance, *, stack: bool, entry: str = BEGINNING.entry
    ) -> MappedImage:
        """Capture the current memory."""
        assert isinstance(program, WasmtimeInstance)
        return program.capture(stack=stack, entry=entry)

    def instantiate(
        self, module: Module, memory_limit: int, image: abilities.MemoryImage
    ) -> WasmtimeInstance:
        """An instance that starts with the image."""
        assert isinstance(module, WasmtimeModule)
        assert isinstance(image, MappedImage)
        return module.instantiate(memory_limit, image)


class WasmtimeCopies:
    """See `abilities.MemoryCopies`."""

    available = True

    def duplicate(
        self, program: Instance, memory_limit: int, fork_result: int | None = None
    ) -> WasmtimeInstance:
        """A copy of a program that waits."""
        assert isinstance(program, WasmtimeInstance)
        return dormant_memory.duplicate(program, memory_limit, fork_result)

    def share(self, program: Instance) -> None:
        """Put large parts of the memory into a file."""
        assert isinstance(program, WasmtimeInstance)
        share_memory(program)

    def describe(self, program: Instance) -> DormantProgram:
        """What a copy would have, without its memory."""
        assert isinstance(program, WasmtimeInstance)
        return dormant_memory.describe(program)

    def differences(self, program: Instance, base: Instance) -> Iterator[tuple[int, bytes]]:
        """What differs from a new instance."""
        assert isinstance(program, WasmtimeInstance)
        assert isinstance(base, WasmtimeInstance)
        return dormant_memory.differences(program, base)

    def fill(
        self, instance: Instance, dormant: DormantProgram, parts: Iterable[tuple[int, bytes]]
    ) -> None:
        """Make a new instance the described program."""
        assert isinstance(instance, WasmtimeInstance)
        dormant_memory.fill(instance, dormant, parts)


class WasmtimeMemoryControl:
    """See `abilities.MemoryControl`."""

    def stack_reserve(self, program: Instance) -> int:
        """The size of the C stack."""
        assert isinstance(program, WasmtimeInstance)
        return program.stack_reserve()

    def stacks_in_use(self, program: Instance, c_stack: int) -> tuple[int, int]:
        """How much of both stacks is resident."""
        assert isinstance(program, WasmtimeInstance)
        return program.stacks_in_use(c_stack)

    def shared_bytes(self, program: Instance) -> int:
        """How much of its image the program shares at first."""
        assert isinstance(program, WasmtimeInstance)
        return program.shared_bytes()

    def written_bytes(self, program: Instance) -> int:
        """How much of it the program has written."""
        assert isinstance(program, WasmtimeInstance)
        return program.written_bytes()

    def page_faults(self) -> int:
        """The page faults of this thread."""
        return page_faults()

    def held_bytes(self, program: Instance) -> int:
        """What the instance uses beside its linear memory."""
        assert isinstance(program, WasmtimeInstance)
        return program.held_bytes()

    def limit_memory(self, program: Instance, limit: int) -> None:
        """Limit the growth of the memory."""
        assert isinstance(program, WasmtimeInstance)
        program.limit_memory(limit)
