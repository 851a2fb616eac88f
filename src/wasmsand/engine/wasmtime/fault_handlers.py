"""Keeping wasmtime's signal handlers in place.

Owns the check that faults of guests still reach wasmtime. A guest that accesses memory outside its
own raises SIGSEGV in the host process, and wasmtime's handler turns it into a trap. If a handler
was installed later (by Python's `faulthandler.enable()`, or a crash reporter), it would end the
host process instead. Rules: the handlers are compared each time a guest is entered. Replaced
handlers are put back, and one warning says so. A handler that was installed before the engine is
not affected: wasmtime passes on signals that are not its own.

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
    """The signal handlers after an engine was created."""

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
        """Put replaced handlers back; takes about 1 us if none was replaced."""
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
