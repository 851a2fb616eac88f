"""The fuzzer finds defects, writes repeatable findings, and continues."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

from fuzz.mutation import mutated
from fuzz.targets.archives import sealed

_SECONDS = 120

BROKEN = """
import os, sys
from fuzz import coverage
coverage.install()
from fuzz import cli, targets
from fuzz.target import Finding, Target
from wasmsand.wire import strict_json

class Broken(Target):
    name = "broken"
    about = "breaks"
    hang_seconds = 1.0
    def seeds(self):
        return [b"[1]", b"raise", b"die", b"hang", b"log", b"[2]"]
    def run(self, data):
        if data == b"raise":
            raise ZeroDivisionError("by an input")
        if data == b"die":
            os.abort()
        if data == b"log":
            import logging
            logging.getLogger("wasmsand").error("host bug")
        while data == b"hang":
            pass
        try:
            strict_json.decode(data)
        except strict_json.BadJson:
            pass

targets.TARGETS["broken"] = Broken
sys.exit(cli.main(sys.argv[1:]))
"""


def fuzz(directory: Path, *words: str, code: str = "") -> subprocess.CompletedProcess[str]:
    program = ["-c", code] if code else ["-m", "fuzz"]
    return subprocess.run(
        [sys.executable, *program, "--out", str(directory), *words],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )


def test_a_sound_interface_has_no_findings(tmp_path: Path) -> None:
    done = fuzz(tmp_path, "--seconds", "3", "graphs", "line")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 findings" in done.stdout


def test_findings_of_every_kind_are_written_and_the_run_goes_on(tmp_path: Path) -> None:
    done = fuzz(tmp_path, "--seconds", "8", "broken", code=BROKEN)
    assert done.returncode == 1, done.stdout + done.stderr
    found = {path.name.rsplit("-", 1)[0]: path for path in tmp_path.glob("*.bin")}
    assert {kind: path.read_bytes() for kind, path in found.items()} == {
        "broken-exception": b"raise",
        "broken-crash": b"die",
        "broken-hang": b"hang",
        "broken-host-bug": b"log",
    }
    exception = found["broken-exception"]
    assert f"python -m fuzz --replay {exception}" in exception.with_suffix(".txt").read_text()
    again = fuzz(tmp_path, "--replay", str(exception), code=BROKEN)
    assert again.returncode == 1
    assert "ZeroDivisionError: by an input" in again.stderr


def test_inputs_that_reach_new_code_are_kept(tmp_path: Path) -> None:
    fuzz(tmp_path, "--seconds", "4", "line")
    assert list((tmp_path / "corpus" / "line").iterdir())


def test_an_unknown_target_is_refused(tmp_path: Path) -> None:
    done = fuzz(tmp_path, "nothing")
    assert done.returncode == 2
    assert "unknown target: nothing" in done.stderr


def test_mutation_is_repeated_by_its_seed_and_stays_short() -> None:
    first, second = (
        [
            mutated(Random(seed), b"some input 12", b"other", (b"word",), most=64)
            for seed in range(99)
        ]
        for _ in range(2)
    )
    assert first == second
    assert len(set(first)) > 50
    assert max(map(len, first)) <= 64


def test_a_header_with_any_size_can_be_sealed() -> None:
    for size in (b"-7777777777\0", b"77777777777\0", b"\xff" * 12, b"          \0\0"):
        header = b"name".ljust(124, b"\0") + size
        assert len(sealed(header.ljust(1024, b"\0"))) == 1024
