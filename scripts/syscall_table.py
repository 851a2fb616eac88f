"""Writes docs/syscalls.md and docs/wasi.md from the tables of calls of the two ABIs.

`python scripts/syscall_table.py` writes the files. With `--check` it writes nothing, and exits with
status 1 if a file is out of date.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from wasmsand.abi.linux.table import SYSTEM_CALLS, Status, SystemCall  # noqa: E402
from wasmsand.abi.wasi.table import FUNCTIONS, WasiFunction  # noqa: E402

DOCUMENT = ROOT / "docs" / "syscalls.md"
WASI_DOCUMENT = ROOT / "docs" / "wasi.md"

_HEAD = """\
# System calls

Written by `python scripts/syscall_table.py` from `src/wasmsand/abi/linux/table.py`; do not edit.

The numbers are those of the generic 32-bit Linux ABI; calls from 1000 on are specific to
wasmsand. A call with a number that is not listed returns ENOSYS.

| status | calls | meaning |
|---|---:|---|
"""

_MEANINGS = {
    Status.FULL: "behaves as on Linux",
    Status.PARTIAL: "behaves as on Linux, with the differences or limits in the note",
    Status.LIBC: "implemented by the libc inside the guest; the kernel returns ENOSYS",
    Status.ABSENT: "not implemented; returns ENOSYS",
}


_WASI_HEAD = """\
# WASI programs

Written by `python scripts/syscall_table.py` from `src/wasmsand/abi/wasi/table.py`; do not edit.

You can run your own programs, built for wasm32-wasip1 from Rust, Go, Zig, C or Swift, as
commands of a sandbox. There are two ways to add one:

- `Sandbox(wasm_dir="programs")`, or `wasmsand run --wasm-dir programs`: every
  `programs/NAME.wasm` becomes the command `NAME`. It is compiled before the sandbox is created,
  once per host.
- Write the module into the sandbox (`files.write("/usr/local/bin/NAME", wasm)`), make it
  executable, and run it. It is compiled at its first run, in a separate process with limits on
  size, CPU time and memory, and then cached.

Such a program runs as an ordinary process. It works in pipelines with bash and the programs of
the image, and has a pid, arguments, an environment, an exit code, and signals with their default
actions. The shell reports a trap like a signal.

wasmsand implements all {count} functions of `wasi_snapshot_preview1`, and those of its
predecessor `wasi_unstable` with its different struct layouts. A program that imports any other
function does not start; the error names the file and the import. Each function has a test
program in `tests/wasi/programs`. [Decision 0007](decisions/0007-wasi-preopens.md) explains how
programs find their files; [limitations](limitations.md) lists what does not work.

An argument has the type i32, or i64 if it is marked with an asterisk.

| function | arguments | wasi_unstable | note |
|---|---|---|---|
"""


def arguments_of(call: SystemCall) -> str:
    """The names of a call's arguments."""
    if call.function is None:
        return ""
    names = list(inspect.signature(call.function).parameters)[1:]
    return ", ".join(name.replace("_", " ") for name in names)


def document() -> str:
    """The text of docs/syscalls.md."""
    lines = [_HEAD]
    for status, meaning in _MEANINGS.items():
        count = sum(1 for call in SYSTEM_CALLS if call.status is status)
        lines.append(f"| {status.value} | {count} | {meaning} |\n")
    lines.append("\n| number | name | arguments | status | note |\n|---:|---|---|---|---|\n")
    for call in sorted(SYSTEM_CALLS, key=lambda call: call.number):
        lines.append(
            f"| {call.number} | `{call.name}` | {arguments_of(call)} | {call.status.value} "
            f"| {call.note} |\n"
        )
    return "".join(lines)


def _wasi_arguments(row: WasiFunction) -> str:
    names = list(inspect.signature(row.handler).parameters)[1:]
    marked = (
        name.replace("_", " ") + ("*" if letter == "I" else "")
        for name, letter in zip(names, row.parameters, strict=True)
    )
    return ", ".join(marked)


def wasi_document() -> str:
    """The text of docs/wasi.md."""
    lines = [_WASI_HEAD.format(count=len(FUNCTIONS))]
    for row in sorted(FUNCTIONS, key=lambda row: row.name):
        there = "-" if not row.in_unstable else "other layout" if row.unstable else "same"
        lines.append(f"| `{row.name}` | {_wasi_arguments(row)} | {there} | {row.note} |\n")
    return "".join(lines)


def main(arguments: list[str]) -> int:
    """Write or check the files."""
    status = 0
    for path, text in ((DOCUMENT, document()), (WASI_DOCUMENT, wasi_document())):
        if "--check" not in arguments:
            path.write_text(text, "utf-8")
        elif not path.is_file() or path.read_text("utf-8") != text:
            print(f"{path.relative_to(ROOT)} is out of date: run python scripts/syscall_table.py")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
