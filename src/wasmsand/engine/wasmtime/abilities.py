"""The abilities of the wasmtime engine.

Owns the step from the protocols of `engine/abilities.py`, which know any instance, to this
engine's own instances, which do the work. Rules: an object of another engine is a bug of ours.
"""

from __future__ import annotations

from wasmsand.engine import abilities
from wasmsand.engine.protocol import Instance, Module
from wasmsand.engine.wasmtime.instance import WasmtimeInstance
from wasmsand.engine.wasmtime.memory_image import MappedImage
from wasmsand.engine.wasmtime.module import WasmtimeModule


class WasmtimeThreads:
    """See `abilities.ProgramThreads`."""

    def new_thread(self, program: Instance, stack_pointer: int, argument: int) -> WasmtimeInstance:
        """Another thread of the program."""
        assert isinstance(program, WasmtimeInstance)
        return program.new_thread(stack_pointer, argument)

    def catch_up(self, thread: Instance) -> None:
        """See the memory as large as it is."""
        assert isinstance(thread, WasmtimeInstance)
        thread.catch_up()


class WasmtimeImages:
    """See `abilities.MemoryImages`."""

    available = True

    def capture(self, program: Instance, *, stack: bool) -> MappedImage:
        """The memory as it is now."""
        assert isinstance(program, WasmtimeInstance)
        return program.capture(stack=stack)

    def instantiate(
        self, module: Module, memory_limit: int, image: abilities.MemoryImage
    ) -> WasmtimeInstance:
        """An instance that begins with the image."""
        assert isinstance(module, WasmtimeModule)
        assert isinstance(image, MappedImage)
        return module.instantiate(memory_limit, image)


class WasmtimeMemoryControl:
    """See `abilities.MemoryControl`."""

    def stack_reserve(self, program: Instance) -> int:
        """Bytes of the C stack."""
        assert isinstance(program, WasmtimeInstance)
        return program.stack_reserve()

    def stacks_in_use(self, program: Instance, c_stack: int) -> tuple[int, int]:
        """What of both stacks takes room."""
        assert isinstance(program, WasmtimeInstance)
        return program.stacks_in_use(c_stack)

    def held_bytes(self, program: Instance) -> int:
        """What the instance holds beside its memory."""
        assert isinstance(program, WasmtimeInstance)
        return program.held_bytes()

    def limit_memory(self, program: Instance, limit: int) -> None:
        """Bound the memory's growth."""
        assert isinstance(program, WasmtimeInstance)
        program.limit_memory(limit)
