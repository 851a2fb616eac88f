"""The Node process of a machine, and its pipes.

Owns starting it and ending it with its group. Rules: standard input and output carry the channel
to the guest; each line of standard error is an event of machine.mjs, or what Node itself says. The
last lines are kept for error messages.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from wasmsand.v86.image import V86Image

_SCRIPT: Final = Path(__file__).with_name("machine.mjs")
_HEAP_MEGABYTES: Final = 512
_LAST_LINES: Final = 8
_LINE_BYTES: Final = 4096


class NodeProcess:
    """A running machine, as a process."""

    def __init__(self, image: V86Image, on_event: Callable[[str, str], None]) -> None:
        """`on_event` gets the name and the text of each event, on a thread of its own."""
        self._on_event = on_event
        self._killing = threading.Lock()
        self._last: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        place = image.directory
        machine = {
            "v86": str(place / "v86"),
            "memory_bytes": image.memory_bytes,
            "root": str(place / "root.ext4"),
            "scratch_bytes": image.scratch_bytes,
            "state": str(place / "state.zst"),
        }
        settings = {
            "node": str(image.node),
            "readable": [str(place), str(_SCRIPT)],
            "parent": os.getpid(),
            "memory_bytes": image.memory_bytes,
            "disk_bytes": image.most_disk_bytes,
            "arguments": [
                "--permission",
                f"--allow-fs-read={place}",
                f"--allow-fs-read={_SCRIPT}",
                f"--max-old-space-size={_HEAP_MEGABYTES}",
                "--disallow-code-generation-from-strings",
                "--liftoff-only",
                "--no-warnings",
                str(_SCRIPT),
                json.dumps(machine),
            ],
        }
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "wasmsand.v86.confined", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to_guest: IO[bytes] = self.process.stdin
        self.from_guest: IO[bytes] = self.process.stdout
        threading.Thread(target=self._listen, name="wasmsand-v86-log", daemon=True).start()

    def _listen(self) -> None:
        stream = self.process.stderr
        assert stream is not None
        with stream, suppress(OSError, ValueError):
            while line := stream.readline(_LINE_BYTES):
                self._hear(line.decode("utf-8", "replace").strip())

    def _hear(self, line: str) -> None:
        try:
            event = json.loads(line)
            name, text = str(event["event"]), str(event.get("line", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            if line:
                self._last.append(line)
            return
        self._on_event(name, text)

    def last_words(self) -> str:
        """What Node has said about its end."""
        return "; ".join(self._last)

    def kill(self) -> None:
        """End the process and everything in its group; idempotent."""
        with self._killing:
            if self.process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
