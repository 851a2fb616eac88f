"""CPython in the sandbox and natively: starting, importing, computing.

Rules: each case is a whole command, as a user types it, so the time of a kernel includes the
start of the interpreter; both sides run the kernels in `python_kernels.py`.
"""

from __future__ import annotations

from pathlib import Path

from bench.programs import ProgramRun
from bench.python_kernels import KERNELS
from bench.sides import Script, Side

_KERNELS = Path(__file__).with_name("python_kernels.py")


def _write_kernels(side: Side) -> None:
    side.write("kernels.py", _KERNELS.read_bytes())


def python_cases(few: int, bulk: int) -> list[ProgramRun]:
    """Start-up, measured `few` times, and the kernels, `bulk` times each."""
    starts: dict[str, Script] = {
        "python3 -c 'print(1)', no shell": ("python3", "-c", "print(1)"),
        "python3 -c 'print(1)'": "python3 -c 'print(1)'",
        "python3, import json, re, asyncio, sqlite3": (
            "python3 -c 'import json, re, asyncio, sqlite3; print(1)'"
        ),
    }
    return [
        *(
            ProgramRun(name, "python", script, few, _write_kernels)
            for name, script in starts.items()
        ),
        *(
            ProgramRun(
                f"python: {name}", "python", f"python3 kernels.py {name}", bulk, _write_kernels
            )
            for name in KERNELS
        ),
    ]
