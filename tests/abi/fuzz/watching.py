"""Checks every call of a fuzzing guest: its result, and where it wrote in the guest's memory.

The tests in this folder and `python -m fuzz` share it. Rules: a result is a number that the ABI
defines; a call writes only where its arguments say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tests.abi.fuzz.footprints import changes_outside, unexplained_changes
from tests.abi.fuzz.wasi_calls import wasi_footprint
from wasmsand.abi.linux.table import SYSTEM_CALLS
from wasmsand.abi.wasi.table import FUNCTIONS
from wasmsand.engine.protocol import Arguments
from wasmsand.machine.thread_driver import ThreadDriver

_GIVES_AN_ID = frozenset({"getuid", "geteuid", "getgid", "getegid"})
"""Calls that cannot fail and whose result is any 32-bit word."""
CALL_NAMES = {int(call.number): call.name for call in SYSTEM_CALLS}
FUNCTION_NAMES = {row.handler: row.name for row in FUNCTIONS}
_WASI_ERRORS = 77
Call = TypeVar("Call", int, str)


@dataclass
class _Watch(Generic[Call]):
    """What the calls of all guests did."""

    calls: Counter[Call] = field(default_factory=Counter)
    succeeded: Counter[Call] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seed: int = 0

    def _complain(self, name: str, words: tuple[int, ...], what: str) -> None:
        arguments = ", ".join(f"{word:#x}" for word in words)
        self.wrong.append(f"seed {self.seed}: {name}({arguments}): {what}")


class LinuxWatch(_Watch[int]):
    """Watches system calls, by number."""

    def check(
        self, driver: ThreadDriver, number: int, arguments: Arguments, call: Callable[..., int]
    ) -> int:
        """Make a call and check what it did."""
        v = arguments
        words = (v.a, v.b, v.c, v.d, v.e, v.f)
        name = CALL_NAMES.get(number, str(number))
        self.calls[number] += 1
        instance = driver.guest.instance
        before = instance.read(0, instance.memory_size())
        result = call(driver, number, arguments)
        lowest = -0x8000_0000 if name in _GIVES_AN_ID else -4095
        if not isinstance(result, int) or not lowest <= result <= 0x7FFF_FFFF:
            self._complain(name, words, f"the result is {result!r}")
        if result >= 0:
            self.succeeded[number] += 1
        if driver.guest.instance is instance:
            after = instance.read(0, instance.memory_size())
            changed = unexplained_changes(number, words, before, after, result)
            if changed:
                self._complain(name, words, f"result {result}, wrote at {changed}")
        return result


class WasiWatch(_Watch[str]):
    """Watches WASI functions, by name."""

    def check(
        self, driver: ThreadDriver, handler: Callable[..., Any], words: tuple[int, ...], call: Any
    ) -> int:
        """Make a call and check what it did."""
        name = FUNCTION_NAMES[handler]
        self.calls[name] += 1
        instance = driver.guest.instance
        before = instance.read(0, instance.memory_size())
        result: int = call(driver, handler, *words)
        if not isinstance(result, int) or not 0 <= result < _WASI_ERRORS:
            self._complain(name, words, f"the result is {result!r}")
        self.succeeded[name] += not result
        after = instance.read(0, instance.memory_size())
        if after != before:
            changed = changes_outside(wasi_footprint(name, words, before, result), before, after)
            if changed:
                self._complain(name, words, f"result {result}, wrote at {changed}")
        return result
