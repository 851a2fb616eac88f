"""How each sandbox runs a script.

Owns the sandboxes that are compared, with their versions, and how they are installed. Rules: each
runs with the settings that its own documentation recommends for agents, with every feature on that
it brings itself (just-bash: Python, JavaScript and SQLite). Each script gets a new sandbox.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, NamedTuple, Protocol

PLACE: Final = Path(__file__).resolve().parents[2] / "build" / "peers"
VERSIONS: Final = {"just-bash": "3.4.2", "bashkit": "0.20.1"}
_SECONDS: Final = 60


class Outcome(NamedTuple):
    """What a script printed, and how long it took with the creation of its sandbox."""

    stdout: str
    seconds: float
    failure: str = ""


class Runner(Protocol):
    """One kind of sandbox."""

    name: str

    def run(self, script: str) -> Outcome:
        """Run a script in a new sandbox."""


class Wasmsand:
    """This package."""

    name = "wasmsand"

    def run(self, script: str) -> Outcome:
        """See `Runner`."""
        from wasmsand import Sandbox

        began = time.perf_counter()
        packages = ["numpy", "pandas"] if "import numpy" in script or "pandas" in script else []
        with Sandbox(packages=packages) as sandbox:
            result = sandbox.commands.run(script, timeout_ms=_SECONDS * 1000)
        return Outcome(result.stdout, time.perf_counter() - began)


class Native:
    """The programs of this machine."""

    name = "this machine"

    def __init__(self, place: Path) -> None:
        self._place = place

    def run(self, script: str) -> Outcome:
        """See `Runner`."""
        began = time.perf_counter()
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._place,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        return Outcome(done.stdout, time.perf_counter() - began)


class _Lines:
    """A program that runs a script per line of JSON, and answers with a line of JSON."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self._process = process

    def run(self, script: str) -> Outcome:
        """See `Runner`."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(script) + "\n")
        stdin.flush()
        return _answer(stdout)


def _answer(stream: IO[str]) -> Outcome:
    line = stream.readline()
    if not line:
        return Outcome("", 0.0, "it ended")
    answer = json.loads(line)
    return Outcome(answer["stdout"], answer["seconds"], answer.get("failure", ""))


_JUST_BASH: Final = """
import { Bash } from "just-bash";
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const began = performance.now();
  let answer;
  try {
    const bash = new Bash({ python: true, javascript: true });
    const limit = AbortSignal.timeout(20000);
    const result = await Promise.race([
      bash.exec(JSON.parse(line), { signal: limit }),
      new Promise((_, no) => limit.addEventListener("abort", () => no(new Error("timeout")))),
    ]);
    answer = { stdout: result.stdout };
  } catch (error) {
    answer = { stdout: "", failure: String(error).slice(0, 200) };
  }
  console.log(JSON.stringify({ ...answer, seconds: (performance.now() - began) / 1000 }));
}
process.exit(0);
"""

_BASHKIT: Final = """
import json, sys, time
from bashkit import Bash
for line in sys.stdin:
    began = time.perf_counter()
    try:
        answer = {"stdout": Bash(python=True, sqlite=True).execute_sync(json.loads(line)).stdout}
    except Exception as error:
        answer = {"stdout": "", "failure": repr(error)[:200]}
    answer["seconds"] = time.perf_counter() - began
    print(json.dumps(answer), flush=True)
"""


@contextmanager
def just_bash() -> Iterator[Runner]:
    """just-bash, in Node."""
    place = PLACE / "node"
    if not (place / "node_modules" / "just-bash").exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true, "type": "module"}\n')
        _quietly(["npm", "install", f"just-bash@{VERSIONS['just-bash']}"], place)
    (place / "serve.mjs").write_text(_JUST_BASH)
    with _started("just-bash", ["node", "serve.mjs"], place) as runner:
        yield runner


@contextmanager
def bashkit() -> Iterator[Runner]:
    """bashkit, in an environment of its own."""
    place = PLACE / "python"
    python = place / "bin" / "python"
    if not python.exists():
        _quietly([sys.executable, "-m", "venv", str(place)], Path.cwd())
        _quietly([str(python), "-m", "pip", "install", f"bashkit=={VERSIONS['bashkit']}"], place)
    with _started("bashkit", [str(python), "-c", _BASHKIT], place) as runner:
        yield runner


def _quietly(command: Sequence[str], place: Path) -> None:
    subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def _started(name: str, command: Sequence[str], place: Path) -> Iterator[Runner]:
    with subprocess.Popen(
        command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield _Lines(name, process)
        finally:
            process.kill()
