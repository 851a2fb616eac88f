"""The table of calls: consistent, documented, and tested row by row."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from scripts.syscall_table import DOCUMENT, WASI_DOCUMENT, document, wasi_document
from wasmsand.abi.linux.table import HANDLERS, SYSTEM_CALLS, Status

HERE = Path(__file__).resolve().parent


def test_the_documents_are_current() -> None:
    advice = "run python scripts/syscall_table.py"
    assert DOCUMENT.read_text("utf-8") == document(), advice
    assert WASI_DOCUMENT.read_text("utf-8") == wasi_document(), advice


def test_numbers_and_names_are_unique_and_sorted() -> None:
    numbers = [call.number for call in SYSTEM_CALLS]
    assert numbers == sorted(set(numbers))
    names = [call.name for call in SYSTEM_CALLS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("call", SYSTEM_CALLS, ids=lambda call: call.name)
def test_a_row_says_what_its_handler_does(call: object) -> None:
    row = next(c for c in SYSTEM_CALLS if c is call)
    has_handler = row.status in (Status.FULL, Status.PARTIAL)
    assert (row.function is not None) is has_handler
    assert (row.number in HANDLERS) is has_handler
    assert row.status is Status.FULL or row.note, "say what is missing"
    if row.function is not None:
        assert len(inspect.signature(row.function).parameters) == row.arguments + 1


def promised_calls() -> set[str]:
    """The calls that tests in this directory name in their `syscalls` markers."""
    found = set()
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "syscalls"
            ):
                found |= {ast.literal_eval(argument) for argument in node.args}
    return found


def test_every_call_with_a_handler_is_covered_by_a_test() -> None:
    there = {call.name for call in SYSTEM_CALLS if call.function is not None}
    promised = promised_calls()
    assert promised - there == set(), "no such call"
    assert there - promised == set(), "no test names it: add one with @pytest.mark.syscalls"
