"""Dormant programs of the wasmtime engine: copying them, writing them down, making them again.

Owns the operations of `abilities.MemoryCopies`. Rules: `program` does not compute. A description
and the parts of a memory are not trusted: names are compared with the module's exports, and every
address with the size of the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wasmsand.engine.dormant import WASM_PAGE, DormantProgram, differing_runs
from wasmsand.engine.protocol import BEGINNING, GuestTrap, ModuleRejected, Start
from wasmsand.engine.wasmtime.bindings import ffi
from wasmsand.engine.wasmtime.instance import STACK_POINTER, WasmtimeInstance
from wasmsand.engine.wasmtime.layered_image import LayeredImage, merged
from wasmsand.engine.wasmtime.touched_pages import written_ranges

_I32_END = 1 << 32


def duplicate(
    program: WasmtimeInstance, memory_limit: int, fork_result: int | None = None
) -> WasmtimeInstance:
    """See `abilities.MemoryCopies`."""
    size = program.memory_size()
    child = program.sibling(memory_limit)
    try:
        if program.asyncify is not None and program.is_fork_copy:
            fits = program.asyncify.copy_to(child, fork_result)
        else:
            fits = child.grow_memory(size)
            if fits:
                _copy_without_stack(program, child)
    except BaseException:
        child.close()
        raise
    if not fits:
        child.close()
        raise MemoryError(f"no room for a memory of {size} bytes")
    return child


def _copy_without_stack(program: WasmtimeInstance, child: WasmtimeInstance) -> None:
    for name, value in program.exported_variables().items():
        if name != STACK_POINTER:
            child.set_variable(name, value)
    program.copy_memory(child, [(program.stack_reserve(), program.memory_size())])


def describe(program: WasmtimeInstance) -> DormantProgram:
    """See `abilities.MemoryCopies`."""
    variables, fork = program.exported_variables(), None
    if program.asyncify is not None and program.is_fork_copy:
        fork = program.asyncify.dormant()
        variables = {name: value for name, value in variables.items() if name == STACK_POINTER}
    else:
        variables.pop(STACK_POINTER, None)
    size = program.memory_size()
    return DormantProgram(program.module.key, program.entry, size, variables, fork)


def differences(program: WasmtimeInstance, base: WasmtimeInstance) -> Iterator[tuple[int, bytes]]:
    """See `abilities.MemoryCopies`."""
    if program.module is not base.module:
        raise ValueError("the base is an instance of another module")
    memory, other = program.memory_view(), base.memory_view()
    # `share` may change where the memory is while the caller reads it, so this is found out now.
    return differing_runs(memory, other, merged(_candidates(program, base)))


def _candidates(program: WasmtimeInstance, base: WasmtimeInstance) -> Iterator[tuple[int, int]]:
    """The parts of the memory that are copied and may differ."""
    whole: Iterable[tuple[int, int]] = ((program.stack_reserve(), program.memory_size()),)
    if program.asyncify is not None and program.is_fork_copy:
        whole = program.asyncify.copied_ranges()
    image = program.image
    in_file: tuple[tuple[int, int], ...] = ()
    if isinstance(image, LayeredImage):
        in_file, image = image.segments, image.base
    if image is not base.image:
        yield from whole
        return
    # Both began alike, so pages that the program has not written are the same.
    address = int(ffi.cast("uintptr_t", program.memory_base))
    for start, end in whole:
        yield from written_ranges(address, start, end)
        for first, last in in_file:
            if first < end and start < last:
                yield max(first, start), min(last, end)


def fill(
    instance: WasmtimeInstance, dormant: DormantProgram, parts: Iterable[tuple[int, bytes]]
) -> None:
    """See `abilities.MemoryCopies`."""
    exports, size = instance.module.exports, dormant.memory_size
    if dormant.entry not in (BEGINNING.entry, instance.entry):
        raise ModuleRejected(f"does not start at {dormant.entry[:80]!r}")
    if exports.functions.get(dormant.entry) != 0:
        raise ModuleRejected(f"exports no function {dormant.entry[:80]!r}")
    if not dormant.variables.keys() <= exports.variables:
        raise ModuleRejected("lacks variables of the saved program")
    if not all(0 <= value < _I32_END for value in dormant.variables.values()):
        raise ModuleRejected("has an impossible value of a variable")
    if size % WASM_PAGE or size < instance.memory_size():
        raise ModuleRejected(f"cannot have a memory of {size} bytes")
    instance.begin_with(Start(dormant.entry, size, dormant.variables))
    memory, end = instance.memory_view(), 0
    for address, content in parts:
        if not end <= address <= address + len(content) <= size:
            raise ModuleRejected(f"has {len(content)} bytes at {address}: not in order, or outside")
        end = address + len(content)
        memory[address:end] = content
    if dormant.fork is None:
        return
    if instance.asyncify is None:
        raise ModuleRejected("cannot fork")
    try:
        instance.asyncify.become_copy(dormant.fork)
    except GuestTrap as trap:
        raise ModuleRejected(f"cannot go on: {trap}") from None
