#!/usr/bin/python3
"""Stands where curl's test suite expects the program: has it run in a sandbox of the harness.

Owns the native end of `curl_guest.py`. Rules: it needs only Python's own library, and runs as the
user of the tests; arguments, environment, working directory and standard input go to the harness
by the Unix socket beside the suite's tree, and output and exit status come back. If the suite ends
this process, the connection breaks, and the harness ends the program.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import stat
import sys
from pathlib import Path

SOCKET = "curl.socket"
"""In the directory that contains the suite's tree."""


def main() -> int:
    """Run the program and return its exit status."""
    kind = os.fstat(0).st_mode
    given = sys.stdin.buffer.read() if stat.S_ISREG(kind) or stat.S_ISFIFO(kind) else b""
    request = {
        "argv": sys.argv[1:],
        "cwd": str(Path.cwd()),
        "environ": dict(os.environ),
        "stdin": base64.b64encode(given).decode(),
        "stdin_is_a_file": stat.S_ISREG(kind),
    }
    place = Path(__file__).resolve().parents[2] / SOCKET
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(place))
        link.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(link.makefile("rb").readline())
    for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
        stream.buffer.write(base64.b64decode(answer[name]))
        stream.flush()
    return int(answer["exit_code"])


if __name__ == "__main__":
    sys.exit(main())
