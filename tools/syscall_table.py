"""Writes docs/syscalls.md from the table of system calls.

`python tools/syscall_table.py` writes the file; with `--check` it only says, by exit
status 1, that the file is not what it would write.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from wasmsand.abi.linux.table import SYSTEM_CALLS, Status, SystemCall  # noqa: E402

DOCUMENT = ROOT / "docs" / "syscalls.md"

_HEAD = """\
# System calls

Made by `python tools/syscall_table.py` from `src/wasmsand/abi/linux/table.py`; do not edit.

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


def main(arguments: list[str]) -> int:
    """Write or check the file."""
    text = document()
    if "--check" in arguments:
        if not DOCUMENT.is_file() or DOCUMENT.read_text("utf-8") != text:
            print(f"{DOCUMENT.relative_to(ROOT)} is not current: run python tools/syscall_table.py")
            return 1
        return 0
    DOCUMENT.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
