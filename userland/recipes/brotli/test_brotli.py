"""The decoder of Brotli, as curl uses it."""

from __future__ import annotations

from userland.recipes.guest_server import start_web_server
from wasmsand import Sandbox

STORED = "0b0580" + b"hello world".hex() + "03"
"""A stream of one part that is not compressed, and the end."""


def test_curl_decodes_brotli(sandbox: Sandbox) -> None:
    start_web_server(sandbox)
    url = f"http://127.0.0.1:8000/encoded?br={STORED}"
    result = sandbox.commands.run(["curl", "-sS", "--compressed", url])
    assert (result.stdout, result.stderr) == ("hello world", "")


def test_a_damaged_stream_is_an_error(sandbox: Sandbox) -> None:
    start_web_server(sandbox)
    url = f"http://127.0.0.1:8000/encoded?br=ff{STORED}"
    result = sandbox.commands.run(["curl", "-sS", "--compressed", url])
    assert (result.stdout, result.exit_code) == ("", 61)
    assert result.stderr.startswith("curl: (61) ")
