"""`python -m tests.differential.native_outcomes FILE`: what the cases do natively, as JSON.

The tests of `web/` compare with it what a page and Node do. Rules: bytes are base64. Nothing is
built: without the native programs (`python -m tests.differential` builds them) there is no file. A
file that was written for the same cases and the same native programs is kept. Cases with an xfail
are left out: what they show does not depend on where the kernel runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from conformance.native import let_native_programs_be_interrupted
from tests.differential.case_files import Case, load_cases
from tests.differential.native_side import native_directory, run_natively
from tests.differential.outcome import TIME_LIMIT, environment
from tests.differential.reference import is_built, needed_recipes, reference_tree


def outcome_of(case: Case, tree: Path) -> dict[str, Any]:
    """A case, and what it does natively."""
    with native_directory() as directory:
        found = run_natively(case.script, directory, tree)
        return {
            "name": case.identity,
            "script": case.script,
            "ignore": sorted(case.ignore),
            "directory": str(directory),
            "environment": environment(str(directory)),
            "timeLimitMs": int(TIME_LIMIT * 1000),
            "exitCode": found.exit_code,
            "stdout": _text(found.stdout),
            "stderr": _text(found.stderr),
            "files": {
                name: {
                    "kind": file.kind,
                    "mode": file.mode,
                    "content": _text(file.content),
                }
                for name, file in found.files.items()
            },
        }


def write_outcomes(target: Path) -> None:
    """Run the cases natively, unless the file has their outcomes already."""
    recipes = needed_recipes()
    if not is_built(recipes):
        target.unlink(missing_ok=True)
        print("no native programs to compare with: python -m tests.differential builds them")
        return
    tree = reference_tree(recipes)
    cases = [case for case in load_cases() if case.xfail is None]
    known = [(case.identity, case.script, sorted(case.ignore)) for case in cases]
    parts = [Path(__file__).read_text("utf-8"), str(tree), json.dumps(known)]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    if _key_of(target) == key:
        return
    let_native_programs_be_interrupted()
    with suppress(PermissionError):  # cases print their priority, which nice(1) changes
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(lambda case: outcome_of(case, tree), cases))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"key": key, "cases": outcomes}), encoding="utf-8")


def _key_of(target: Path) -> str | None:
    try:
        found = json.loads(target.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return str(found["key"])


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


if __name__ == "__main__":
    write_outcomes(Path(sys.argv[1]))
