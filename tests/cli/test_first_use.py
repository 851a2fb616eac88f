"""The first use of a program that has to be compiled: named, and never counted as the command's
time."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wasmsand import Sandbox
from wasmsand.engine import default_engine
from wasmsand.engine.choosing import settle_places
from wasmsand.machine.image import image_programs

pytestmark = pytest.mark.slow
TO_COMPILE = ("curl", "git", "openssl", "sqlite3", "wget")
"""Each takes seconds to compile."""
SECONDS = 2
"""The timeout of each command: enough to run the program, too little to compile it too."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A cache in which only the programs of TO_COMPILE are missing."""
    cache = tmp_path_factory.mktemp("cache")
    modules = cache / "modules"
    modules.mkdir(mode=0o700)
    engine, known = default_engine(), settle_places().compiled_modules
    for program in image_programs():
        if program.name in TO_COMPILE:
            continue
        if not engine.is_compiled(program.sha256):
            engine.load(program.sha256, program.read)
        engine.keep_compiled(program.sha256)
        names = [path.name for path in known.glob(f"{program.sha256}-*.cwasm")]
        if program.prepared is not None:
            names.append(f"{program.prepared.memory.sha256}.memory")
        for name in names:
            _take(known / name, modules / name)
    return os.environ | {"WASMSAND_CACHE": str(cache)}


def _take(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another file system
        shutil.copyfile(source, target)


def run(
    environment: dict[str, str], *words: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_wasmsand_run_names_the_program_and_does_not_time_out(environment: dict[str, str]) -> None:
    words = ("-m", "wasmsand", "run", f"--timeout={SECONDS}", "git --version | cat")
    result = run(environment, *words)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("git version")
    assert result.stderr == "wasmsand: compiling git for this machine (once) ...\n"
    assert run(environment, *words).stderr == ""


def test_the_line_protocol_does_not_time_out(environment: dict[str, str]) -> None:
    request = {
        "type": "shell",
        "id": "1",
        "command": "curl --version",
        "time_limit_ms": SECONDS * 1000,
    }
    result = run(environment, "-m", "wasmsand", "line", stdin=json.dumps(request) + "\n")
    answer = json.loads(result.stdout)
    assert (answer["exit_code"], answer["timed_out"]) == (0, False), answer
    assert "compiling curl for this machine" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "command"),
    [("", "openssl version"), ("isolation='process'", "wget --version")],
)
def test_a_session_does_not_time_out(
    environment: dict[str, str], arguments: str, command: str
) -> None:
    script = f"""
from wasmsand import Sandbox
with Sandbox({arguments}) as sandbox, sandbox.shell() as shell:
    result = shell.run({command!r}, timeout_ms={SECONDS * 1000})
    print(result.exit_code, result.timed_out)
"""
    result = run(environment, "-c", script)
    assert result.stdout == "0 False\n", result.stderr


def test_a_session_on_a_server_does_not_time_out(environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "wasmsand", "serve", "--port", "0", "--workers", "1"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            greeting = re.search(r"http://\S+:\d+", server.stdout.readline())
            assert greeting is not None
            with Sandbox.connect(greeting[0]) as sandbox, sandbox.shell() as shell:
                result = shell.run("sqlite3 --version", timeout_ms=SECONDS * 1000)
            assert (result.exit_code, result.timed_out) == (0, False)
        finally:
            server.terminate()
        assert "compiling sqlite3 for this machine" in server.stdout.read()
