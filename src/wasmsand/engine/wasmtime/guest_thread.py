"""A further thread of a program: an instance that runs in the memory of another.

Owns `WasmtimeThread`. Rules: a thread has its own stack, globals and function table, but uses the
memory of the first instance, which owns it. Creating an instance fills a scratch area with the
program's data, which takes a millisecond for ten megabytes. So a few instances whose threads ended
by a host call are kept for the program's next threads; those that trapped are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasmsand.engine.protocol import GuestUnwind
from wasmsand.engine.wasmtime.instance import WasmtimeInstance
from wasmsand.engine.wasmtime.shared_memory import MemoryHandover, ThreadModule
from wasmsand.engine.wasmtime.store import GuestStore

if TYPE_CHECKING:
    from wasmsand.engine.wasmtime.module import WasmtimeModule

THREAD_START = "__thread_start"
_EAGAIN = 11
_IDLE_MAX = 8
"""Instances of ended threads that a program keeps."""
_IDLE_EXCEPTION_BYTES = 256 << 10
"""The largest exception heap that an idle instance may keep."""


class WasmtimeThread(WasmtimeInstance):
    """One thread of a program; see `abilities.ProgramThreads`."""

    def __init__(
        self,
        module: WasmtimeModule,
        ready: ThreadModule,
        first: WasmtimeInstance,
        stack_pointer: int,
        argument: int,
    ) -> None:
        shared = ready.share(first)
        self._first = first
        with MemoryHandover(shared):
            # The limit of the first instance applies.
            engine = module.runtime.sharing.engine
            store = GuestStore(engine, ready.prepared, 1 << 32, module.table_room)
        super().__init__(module, store)
        self.asyncify = None  # only the first thread can fork
        for name, value in first.start.variables.items():
            self.set_variable(name, value)
        shared.leave_scratch()
        self.memory_base = first.memory_base
        self._seen_size = 0
        self._begin(stack_pointer, argument)

    @staticmethod
    def take_idle(
        first: WasmtimeInstance, stack_pointer: int, argument: int
    ) -> WasmtimeThread | None:
        """Reuse an instance whose thread has ended; None if there is none."""
        try:
            thread = first.idle_threads.pop()
        except IndexError:
            return None
        thread._begin(stack_pointer, argument)
        return thread

    def _begin(self, stack_pointer: int, argument: int) -> None:
        self._argument = argument
        self._started = self._ended = self._usable_again = False
        self._first.thread_began()
        self.catch_up()
        self.set_stack_pointer(stack_pointer)

    def _run_to_the_end(self) -> None:
        try:
            self.invoke(THREAD_START, self._argument)
        except GuestUnwind:
            self._usable_again = True
            raise

    def new_thread(self, stack_pointer: int, argument: int) -> WasmtimeThread:
        """Create another thread of the same program."""
        return self._module.start_thread(self._first, stack_pointer, argument)

    def _leave_overflowed_stack(self) -> None:
        """Do nothing: the end of a thread's stack is not known here."""

    def catch_up(self) -> None:
        """Update the size of the memory, which other threads may have grown."""
        size = self._first.memory_size()
        if size != self._seen_size:
            self._store.read_memory_again()
            self._seen_size = size

    def limit_memory(self, limit: int) -> None:
        """Limit the first instance's memory, and this instance's exceptions."""
        self._first.limit_memory(limit)
        super().limit_memory(limit)

    def memory_view(self) -> memoryview:
        """The memory of the program."""
        return self._first.memory_view()

    def memory_size(self) -> int:
        """Bytes of linear memory."""
        return self._first.memory_size()

    def shared_bytes(self) -> int:
        """The image belongs to the first instance."""
        return self._first.shared_bytes()

    def written_bytes(self) -> int:
        """What all threads have written."""
        return self._first.written_bytes()

    def fork_called(self, buffer: int) -> int:
        """Refuse: the child would have to start in the frames of this thread."""
        return -_EAGAIN

    def close(self) -> None:
        """Free everything except the memory, which belongs to the first instance."""
        if self._store.closed or self in self._first.idle_threads:
            return
        small = self.held_bytes() - self._module.instance_bytes <= _IDLE_EXCEPTION_BYTES
        if self._usable_again and small and len(self._first.idle_threads) < _IDLE_MAX:
            self._calls = None  # break reference cycles
            self._first.idle_threads.append(self)
        else:
            super().close()
        self._first.thread_closed()
