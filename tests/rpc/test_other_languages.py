"""A client in another language, which shares no code with us, uses the server."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.rpc.peer import COMMAND
from tests.wire.line_peer import SECONDS

EXPECTED = """\
create: {"ok":true}
write: {"ok":true}
run: {"exitCode":3,"stderr":"oops\\n","stdout":"line two\\nline one\\n"}
read: line one
line two

list: {"entries":[{"name":"x","size":18,"type":"file"}]}
missing: error 1: ENOENT: no such file or directory: /nowhere
nonsense: error -32601: Method not found: nonsense
set: {"ok":true}
get: 6

streamed: streamed

ended: 7
kill: {"ok":true}
status: 0
"""


def test_a_client_in_perl() -> None:
    perl = shutil.which("perl")
    assert perl, "Perl is part of every Debian; this test needs it"
    script = Path(__file__).with_name("client.pl")
    done = subprocess.run(
        [perl, script, *COMMAND], capture_output=True, text=True, timeout=4 * SECONDS
    )
    assert (done.stdout, done.stderr, done.returncode) == (EXPECTED, "", 0)
