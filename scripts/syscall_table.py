"""Writes docs/syscalls.md and docs/wasi.md from the tables of calls of the two ABIs.

`python scripts/syscall_table.py` writes the files; with `--check` it only says, by exit
status 1, that a file is not what it would write.
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

Made by `python scripts/syscall_table.py` from `src/wasmsand/abi/linux/table.py`; do not edit.

The numbers are those of the generic 32-bit Linux ABI; from 1000 on they are our own. A
number that is not listed is answered with ENOSYS.

| status | calls | meaning |
|---|---:|---|
"""

_MEANINGS = {
    Status.FULL: "behaves as on Linux",
    Status.PARTIAL: "behaves as on Linux but for what the note says",
    Status.LIBC: "done by the libc inside the guest; answered with ENOSYS if it gets here",
    Status.ABSENT: "known, not there yet; answered with ENOSYS",
}


_WASI_HEAD = """\
# Functions of WASI preview 1

Made by `python scripts/syscall_table.py` from `src/wasmsand/abi/wasi/table.py`; do not edit.

A program built for wasm32-wasip1 by Rust, Go, Zig, C or Swift is a command of a sandbox:

- `Sandbox(wasm_dir="programs")`, or `wasmsand run --wasm-dir programs`: every
  `programs/NAME.wasm` is the command `NAME`; it is compiled before the sandbox is created, once
  per host;
- or write the module into the sandbox (`files.write("/usr/local/bin/NAME", wasm)`), make it
  executable, and run it; it is compiled when it is first run, in a process of its own within
  limits of size, processor time and memory, and then cached.

It is an ordinary process: in pipelines with bash and the image's programs, with a pid,
arguments, environment, exit code, signals with their default actions. A trap is reported as
the shell reports a signal.

All {count} functions of `wasi_snapshot_preview1` are there, and those of its predecessor
`wasi_unstable`, with the layouts of that one. A program that imports any other function does
not start; the error names the file and the import. Each function has a test program in
`tests/wasi/programs`. How programs find their files is in
[decision 0007](decisions/0007-wasi-preopens.md); what does not work is in
[limitations](limitations.md).

An argument's type is i32, or i64 where it is marked with an asterisk.

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
            print(f"{path.relative_to(ROOT)} is not current: run python scripts/syscall_table.py")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
