"""wasmtime's signal handlers, kept in place.

Owns the check that faults of guests still reach wasmtime. A guest that reads outside its
memory raises SIGSEGV in the host process; wasmtime's handler makes it a trap. A handler
that somebody installs later (Python's `faulthandler.enable()`, a crash reporter) would make
it the host's death instead. Rules: handlers are compared each time a guest is entered;
wasmtime's are put back where they were replaced, and one warning says so. A handler that
was installed before the engine is not affected: wasmtime passes on what is not its own.

Linux only: on macOS wasmtime uses exception ports, on Windows vectored handlers.
"""

from __future__ import annotations

import logging
import signal
import sys

from wasmsand.engine.wasmtime.bindings import NULL, CData, ffi

logger = logging.getLogger("wasmsand.engine")

_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE")


class FaultHandlers:
    """The handlers as they are once an engine exists."""

    def __init__(self) -> None:
        self._expected: list[tuple[int, CData, int]] = []
        self._warned = False
        if sys.platform != "linux":
            return
        self._sigaction = ffi.dlopen(None).sigaction
        for name in _SIGNALS:
            number, action = int(getattr(signal, name)), ffi.new("sigaction_t *")
            self._sigaction(number, NULL, action)
            self._expected.append((number, action, action.handler))

    def keep(self) -> None:
        """Put back handlers that were replaced; about 1 us when none was."""
        current = ffi.new("sigaction_t *")
        for number, action, handler in self._expected:
            self._sigaction(number, NULL, current)
            if current.handler != handler:
                self._sigaction(number, action, NULL)
                self._warn(number)

    def _warn(self, number: int) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(
                "the handler of %s was replaced after the engine started, and was put back: "
                "guests could have crashed the host; call faulthandler.enable() and the like "
                "before the first sandbox",
                signal.Signals(number).name,
            )
