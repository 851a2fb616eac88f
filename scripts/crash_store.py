"""Kills a process that writes to a store of sandboxes, at random moments, again and again.

    python scripts/crash_store.py --rounds 300               # states of plain bytes
    python scripts/crash_store.py --rounds 100 --sandboxes   # whole sandboxes with a live session

Each round starts a process that writes one state after another and says so after each. It is
killed with SIGKILL at a random moment. Then the store must have the last state of which the process
has said so, or a later one, complete. The number of files in the store must not grow.

Rules: a failure is an exception. The tests run a few dozen rounds; hundreds are for this command.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 3 << 20
"""Bytes of a state."""
NAME = "crashing"

BYTES_WRITER = """
import hashlib, random, sys
from wasmsand.sdk.stores import DirectoryStore
claim = DirectoryStore(sys.argv[1]).claim(sys.argv[2])
number, longest = int(sys.argv[3]), int(sys.argv[4])
print("ready", flush=True)
while True:
    number += 1
    content = b"%d " % number + random.randbytes(random.randrange(longest))
    def write(stream):
        stream.write(hashlib.sha256(content).digest())
        for start in range(0, len(content), 100_000):
            stream.write(content[start : start + 100_000])
    claim.write(write)
    print(number, flush=True)
"""
SANDBOX_WRITER = """
import sys
from wasmsand import Sandbox
sandbox = Sandbox.open(sys.argv[2], store=sys.argv[1])
if not sandbox.sessions:
    sandbox.python().run("number = 0")
    sandbox.files.write("number", "0")
session = sandbox.sessions[0]
print("ready", flush=True)
while True:
    number = session.run("number += 1; open('number', 'w').write(str(number)); number").value
    sandbox.flush()
    print(number, flush=True)
"""


class Torn(Exception):
    """A state is not what was written."""


def read_bytes(store: Path) -> int:
    """The number of the stored state of plain bytes."""
    from wasmsand.sdk.stores import DirectoryStore

    claim = DirectoryStore(store).claim(NAME)
    try:
        stream = claim.read()
        if stream is None:
            return 0
        with stream:
            digest, content = stream.read(32), stream.read()
        if hashlib.sha256(content).digest() != digest:
            raise Torn(f"{len(content)} bytes do not match their digest")
        return int(content.split(b" ", 1)[0])
    finally:
        claim.release()


def read_sandbox(store: Path) -> int:
    """The number in the stored sandbox."""
    from wasmsand import Sandbox
    from wasmsand.sdk.python_session import PythonSession

    with Sandbox.open(NAME, store=store) as sandbox:
        if not sandbox.sessions:
            return 0
        session = sandbox.sessions[0]
        assert isinstance(session, PythonSession)
        number = session.run("number").value
        in_file = int(sandbox.files.read_text("number"))
        if not isinstance(number, int) or number != in_file:
            raise Torn(f"{number} in the session, {in_file} in the file")
        return number


def crash_once(store: Path, number: int, seconds: float, *, sandboxes: bool) -> tuple[int, int]:
    """Kill a writer after so many seconds. Returns the last number that it has reported, and the
    number of what is stored."""
    program = SANDBOX_WRITER if sandboxes else BYTES_WRITER
    writer = subprocess.Popen(
        [sys.executable, "-c", program, str(store), NAME, str(number), str(LONGEST)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path[1:]])},
        text=True,
    )
    assert writer.stdout is not None
    with writer:
        assert writer.stdout.readline() == "ready\n", "the writer did not start"
        time.sleep(seconds)
        writer.send_signal(signal.SIGKILL)
        reported = [
            int(line) for line in writer.stdout.read().splitlines(True) if line.endswith("\n")
        ]
    last = max([number, *reported])
    return last, read_sandbox(store) if sandboxes else read_bytes(store)


def crash(store: Path, rounds: int, *, sandboxes: bool, seed: int) -> int:
    """Kill a writer so many times. Returns how many states were written. Raises `Torn`."""
    chosen, number = random.Random(seed), 0
    for _ in range(rounds):
        longest = 2.0 if sandboxes else 0.3
        last, stored = crash_once(store, number, chosen.uniform(0, longest), sandboxes=sandboxes)
        if not last <= stored <= last + 1:
            raise Torn(f"state {stored} is stored, and {last} was written")
        states = list((store / "states").iterdir())
        if len(states) > 1:
            raise Torn(f"{len(states)} files are left for one sandbox")
        number = stored
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--sandboxes", action="store_true", help="write whole sandboxes")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        began = time.monotonic()
        written = crash(Path(directory), given.rounds, sandboxes=given.sandboxes, seed=given.seed)
        took = time.monotonic() - began
    print(f"{given.rounds} crashes, {written} states written, none torn ({took:.0f} s)")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    main()
