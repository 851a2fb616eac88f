"""A further thread of a program: an instance that runs in another one's memory.

Owns `WasmtimeThread`. Rules: a thread has its own stack, globals and function table, and the first
instance's memory, which the first instance answers for. Making one fills a scratch area with the
program's data, which takes a millisecond for ten megabytes. So a few instances whose thread ended
by a host call are kept for the program's next threads; those that trapped are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasmsand.engine.protocol import GuestUnwind
from wasmsand.engine.wasmtime.instance import WasmtimeInstance
from wasmsand.engine.wasmtime.shared_memory import MemoryHandover, ThreadModule

if TYPE_CHECKING:
    from wasmsand.engine.wasmtime.module import WasmtimeModule

THREAD_START = "__thread_start"
_EAGAIN = 11
_IDLE_MAX = 8
"""Instances of ended threads that a program keeps."""
_IDLE_EXCEPTION_BYTES = 256 << 10
"""The largest heap of exceptions that an idle instance may keep."""


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
            # The first instance's limit is the one that counts.
            super().__init__(module, ready.prepared, 1 << 32, module.runtime.sharing.engine)
        self.asyncify = None  # only the first thread can fork
        if first.image is not None:
            first.image.set_variables(self)
        shared.leave_scratch()
        self.memory_base = first.memory_base
        self._seen_size = 0
        self._begin(stack_pointer, argument)

    @staticmethod
    def take_idle(
        first: WasmtimeInstance, stack_pointer: int, argument: int
    ) -> WasmtimeThread | None:
        """An instance whose thread has ended, for another thread."""
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
        """Another thread of the same program."""
        return self._module.start_thread(self._first, stack_pointer, argument)

    def _leave_overflowed_stack(self) -> None:
        """Do nothing: where a thread's stack ends is not known here."""

    def catch_up(self) -> None:
        """See the memory as large as the other threads left it."""
        size = self._first.memory_size()
        if size != self._seen_size:
            self._store.read_memory_again()
            self._seen_size = size

    def limit_memory(self, limit: int) -> None:
        """Growth is the first instance's, exceptions are this one's."""
        self._first.limit_memory(limit)
        super().limit_memory(limit)

    def memory_view(self) -> memoryview:
        """The memory of the program."""
        return self._first.memory_view()

    def memory_size(self) -> int:
        """Bytes of linear memory."""
        return self._first.memory_size()

    def fork_called(self, buffer: int) -> int:
        """Refuse: the child would have to begin in the frames of this thread."""
        return -_EAGAIN

    def close(self) -> None:
        """Free all but the memory, which is the first instance's."""
        if self._store.closed or self in self._first.idle_threads:
            return
        small = self.held_bytes() - self._module.instance_bytes <= _IDLE_EXCEPTION_BYTES
        if self._usable_again and small and len(self._first.idle_threads) < _IDLE_MAX:
            self._calls = None  # no circles of references
            self._first.idle_threads.append(self)
        else:
            super().close()
        self._first.thread_closed()
