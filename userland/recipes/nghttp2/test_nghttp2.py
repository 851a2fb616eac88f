"""HTTP/2, as curl speaks it: against a server that knows just enough of it.

tests/programs/test_network_programs.py has curl talk HTTP/2 over TLS to a whole server."""

from __future__ import annotations

from wasmsand import Sandbox

_SERVER = r"""
import socket, struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, SETTINGS, ACK, END_STREAM, END_HEADERS = 1, 4, 1, 1, 4
STATUS_200 = b"\x88"  # an entry of the static table

def frame(kind, flags, stream, payload=b""):
    head = struct.pack(">I", len(payload))[1:] + bytes([kind, flags])
    return head + struct.pack(">I", stream) + payload

listener = socket.create_server(("127.0.0.1", 8000))
open("/tmp/ready", "w").close()
client = listener.accept()[0]
stream = client.makefile("rwb")
assert stream.read(len(PREFACE)) == PREFACE
stream.write(frame(SETTINGS, 0, 0))
stream.flush()
while head := stream.read(9):
    size = int.from_bytes(head[:3])
    kind, flags, number = head[3], head[4], int.from_bytes(head[5:])
    stream.read(size)
    if kind == SETTINGS and not flags & ACK:
        stream.write(frame(SETTINGS, ACK, 0))
    if kind == HEADERS:
        stream.write(frame(HEADERS, END_HEADERS, number, STATUS_200))
        stream.write(frame(0, END_STREAM, number, b"stream %d\n" % number))
    stream.flush()
"""


def test_requests_share_a_connection_of_http_2(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/server.py", _SERVER)
    sandbox.commands.start(["python3", "/tmp/server.py"])
    result = sandbox.commands.run(
        "until test -e /tmp/ready; do sleep 0.02; done\n"
        "curl -sS --http2-prior-knowledge -w '%{http_version} %{num_connects}\\n' "
        "http://127.0.0.1:8000/[1-3]"
    )
    assert (result.stdout, result.stderr) == ("stream 1\n2 1\nstream 3\n2 0\nstream 5\n2 0\n", "")


def test_curl_has_the_library(sandbox: Sandbox) -> None:
    assert "nghttp2/1.70.0" in sandbox.commands.run("curl --version").stdout
