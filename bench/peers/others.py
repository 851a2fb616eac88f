"""How each sandbox runs a script.

Owns the sandboxes that are compared, with their versions, and how they are installed: each in a
directory of its own below build/peers, from its registry, at its first use. Rules: each runs with
the settings that its own documentation recommends for agents (see `programs`). One that cannot be
installed here is left out, with a note.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from bench.peers import programs
from wasmsand import PythonSession, Sandbox, Shell

PLACE: Final = Path(__file__).resolve().parents[2] / "build" / "peers"
VERSIONS: Final = {
    "just-bash": "3.4.2",
    "bashkit": "0.20.1",
    "pyeryx": "0.11.0",
    "Pyodide": "314.0.7",
}
SHELL, PYTHON = "shell", "python"
LIVE_SHELL, LIVE_PYTHON = "live shell", "live python"
_SECONDS: Final = 60
_OTHER_PYTHONS: Final = ("python3.14", "python3.13", "python3.12")
"""Tried after the interpreter that runs the benchmark: pyeryx has wheels for these only."""


class Outcome(NamedTuple):
    """What a script printed, and how long it took, if it was in a new sandbox with its creation."""

    stdout: str
    seconds: float
    failure: str = ""


class Runner(Protocol):
    """One kind of sandbox."""

    name: str
    kinds: frozenset[str]
    """What it can run: a shell script or Python code, in a new sandbox or in a live session."""

    def run(self, kind: str, text: str) -> Outcome:
        """Run a script or code."""


class Wasmsand:
    """This package."""

    name = "wasmsand"
    kinds = frozenset({SHELL, PYTHON, LIVE_SHELL, LIVE_PYTHON})

    def run(self, kind: str, text: str) -> Outcome:
        """See `Runner`."""
        act: Callable[[str], str] = {
            SHELL: self._in_new_shell,
            PYTHON: self._in_new_python,
            LIVE_SHELL: lambda script: self._shell.run(script).stdout,
            LIVE_PYTHON: lambda code: self._python.run(code).stdout,
        }[kind]
        began = time.perf_counter()
        return Outcome(act(text), time.perf_counter() - began)

    @cached_property
    def _shell(self) -> Shell:
        return Sandbox().shell()

    @cached_property
    def _python(self) -> PythonSession:
        return Sandbox().python()

    def _in_new_shell(self, script: str) -> str:
        packages = ["numpy", "pandas"] if "import numpy" in script or "pandas" in script else []
        with Sandbox(packages=packages) as sandbox:
            return sandbox.commands.run(script, timeout_ms=_SECONDS * 1000).stdout

    def _in_new_python(self, code: str) -> str:
        with Sandbox() as sandbox:
            return sandbox.commands.run(["python3", "-c", code]).stdout


class Native:
    """The programs of this machine."""

    name = "this machine"
    kinds = frozenset({SHELL, PYTHON})

    def __init__(self, place: Path) -> None:
        self._place = place

    def run(self, kind: str, text: str) -> Outcome:
        """See `Runner`."""
        began = time.perf_counter()
        done = subprocess.run(
            ["bash" if kind == SHELL else "python3", "-c", text],
            cwd=self._place,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        return Outcome(done.stdout, time.perf_counter() - began)


class _Lines:
    """A program that answers lines of JSON: see `programs`."""

    def __init__(
        self, name: str, kinds: frozenset[str], command: Sequence[str], place: Path
    ) -> None:
        self.name, self.kinds = name, kinds
        self._process = subprocess.Popen(
            command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, kind: str, text: str) -> Outcome:
        """See `Runner`."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"kind": kind, "text": text}) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            return Outcome("", 0.0, "it ended")
        answer = json.loads(line)
        return Outcome(answer["stdout"], answer["seconds"], answer.get("failure", ""))

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.communicate()


def _in_node(package: str, version: str, program: str) -> tuple[list[str], Path]:
    place = PLACE / package
    if not (place / "node_modules" / package).exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true, "type": "module"}\n')
        _quietly(["npm", "install", f"{package}@{version}"], place)
    (place / "serve.mjs").write_text(program)
    return ["node", "serve.mjs"], place


def _in_python(package: str, version: str, program: str) -> tuple[list[str], Path]:
    place = PLACE / package
    python, done = place / "bin" / "python", place / "installed"
    for interpreter in _interpreters():
        if done.exists():
            break
        shutil.rmtree(place, ignore_errors=True)
        try:
            _quietly([interpreter, "-m", "venv", str(place)], Path.cwd())
            wanted = ["--only-binary", ":all:", f"{package}=={version}"]
            _quietly([str(python), "-m", "pip", "install", *wanted], place)
        except (OSError, subprocess.CalledProcessError):
            continue
        done.touch()
    if not done.exists():
        raise OSError(f"no wheel of {package} {version} for a Python of this machine")
    return [str(python), "-c", program], place


def _interpreters() -> list[str]:
    """Interpreters of this machine to try; those of pyenv need not be in the path."""
    pyenv = sorted(Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python3"), reverse=True)
    return [sys.executable, *_OTHER_PYTHONS, *map(str, pyenv)]


def _quietly(command: Sequence[str], place: Path) -> None:
    """Run an installer; what it says appears only if it fails."""
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)


@contextmanager
def others(say: Callable[[str], object]) -> Iterator[list[Runner]]:
    """All other sandboxes that can be installed here; `say` is told of those that cannot."""
    shell_kinds = frozenset({SHELL, PYTHON, LIVE_SHELL})
    python_kinds = frozenset({PYTHON, LIVE_PYTHON})
    plan = (
        ("just-bash", shell_kinds, _in_node, "just-bash", programs.JUST_BASH),
        ("bashkit", shell_kinds, _in_python, "bashkit", programs.BASHKIT),
        ("pyeryx", python_kinds, _in_python, "pyeryx", programs.PYERYX),
        ("Pyodide", python_kinds, _in_node, "pyodide", programs.PYODIDE),
    )
    with ExitStack() as stack:
        found: list[Runner] = []
        for name, kinds, install, package, program in plan:
            try:
                command, place = install(package, VERSIONS[name], program)
                runner = _Lines(name, kinds, command, place)
            except (OSError, subprocess.CalledProcessError) as error:
                say(f"left out: {name} {VERSIONS[name]} ({error})")
                continue
            stack.callback(runner.close)
            found.append(runner)
        yield found
