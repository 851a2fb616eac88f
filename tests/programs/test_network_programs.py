"""curl, wget, git and look-ups through the bridge, against servers of the host."""

from __future__ import annotations

import http.server
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.machine.network.servers import machine, run, server
from wasmsand.machine.machine import Machine

_HTTP2_SERVER = """
const http2 = require("http2"), fs = require("fs"), folder = process.argv[1];
const server = http2.createSecureServer(
  {key: fs.readFileSync(folder + "/key.pem"), cert: fs.readFileSync(folder + "/cert.pem")},
  (request, response) => response.end(request.httpVersion + " " + request.url + "\\n"));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
"""


class _Files(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def web_server(folder: Path, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve the files of a directory; the port."""

    def handler(*arguments: object) -> _Files:
        return _Files(*arguments, directory=str(folder))  # type: ignore[arg-type]

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        if context is not None:
            served.socket = context.wrap_socket(served.socket, server_side=True)
        threading.Thread(target=served.serve_forever, daemon=True).start()
        try:
            yield served.server_port
        finally:
            served.shutdown()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A directory with key.pem, and cert.pem for web.test, which is its own authority."""
    command = "openssl req -x509 -newkey rsa:2048 -noenc -keyout key.pem -out cert.pem -days 2"
    names = ["-subj", "/CN=web.test", "-addext", "subjectAltName=DNS:web.test"]
    subprocess.run([*command.split(), *names], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def script(of: Machine, text: str) -> str:
    """What a script prints, on both streams."""
    return "".join(run(of, "bash", "-c", f"exec 2>&1; {text}"))


def test_curl_and_wget_fetch_by_name(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("hello\n")
    big = bytes(range(256)) * 40_000
    (tmp_path / "big").write_bytes(big)
    with (
        web_server(tmp_path) as port,
        machine("web.test", hosts={"web.test": f"127.0.0.1:{port}"}) as guest,
    ):
        shown = script(
            guest,
            "curl -sS http://web.test/page; wget -qO- http://web.test/page\n"
            "curl -sS http://web.test/big | wc -c; wget -q http://web.test/big && wc -c < big\n"
            "curl -sS -Z -o '#1' 'http://web.test/page?[1-20]' && ls | wc -l; cat 20",
        )
    assert shown == f"hello\nhello\n{len(big)}\n{len(big)}\n21\nhello\n"


def test_what_is_not_allowed_is_not_found_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("hello\n")
    with (
        web_server(tmp_path) as port,
        machine("web.test", hosts={"web.test": f"127.0.0.1:{port}"}) as guest,
    ):
        out, err = run(guest, "curl", "-sS", "http://other.test/page")
        assert out == ""
        assert err.startswith("curl: (6) Could not resolve host: other.test\n")
        assert "wasmsand: network: look-up of other.test refused" in err
        out, err = run(guest, "curl", "-sS", f"http://127.0.0.1:{port}/page")
        assert (out, "curl: (7)" in err) == ("", True)  # that is the sandbox's own loopback


def test_a_redirect_to_a_host_that_is_not_allowed_fails() -> None:
    def redirect(connection: socket.socket) -> None:
        connection.recv(65536)
        answer = (
            b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
        )
        connection.sendall(answer)

    with (
        server(redirect) as port,
        machine("web.test", hosts={"web.test": f"127.0.0.1:{port}"}) as guest,
    ):
        shown = script(guest, "curl -sSL http://web.test/; echo $?; wget -t 1 http://web.test/")
    assert "curl: (7) Failed to connect to 169.254.169.254" in shown
    assert "7\n" in shown
    assert "failed: " in shown


def test_tls_is_end_to_end(certificate: Path) -> None:
    (certificate / "page").write_text("secret\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with (
        web_server(certificate, context) as port,
        machine("web.test", hosts={"web.test": f"127.0.0.1:{port}"}) as guest,
    ):
        authority = (certificate / "cert.pem").read_text()
        shown = script(
            guest,
            f"cat > authority.pem <<'END'\n{authority}END\n"
            "curl -sS --cacert authority.pem https://web.test/page\n"
            "curl -sS https://web.test/page | wc -c\nwget -qO- --ca-certificate=authority.pem https://web.test/page",
        )
    assert shown.startswith("secret\ncurl: (60) SSL certificate")
    assert shown.endswith("\n0\nsecret\n")


@pytest.mark.skipif(shutil.which("node") is None, reason="node, the server of HTTP/2, is not here")
def test_curl_speaks_http_2(certificate: Path) -> None:
    command = ["node", "-e", _HTTP2_SERVER, str(certificate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            port = int(served.stdout.readline())
            with machine("web.test", hosts={"web.test": f"127.0.0.1:{port}"}) as guest:
                shown = script(guest, "curl -sSk -w '%{http_version}\\n' https://web.test/[1-3]")
        finally:
            served.kill()
    assert shown == "2.0 /1\n2\n2.0 /2\n2\n2.0 /3\n2\n"


def test_git_clones_from_the_host(tmp_path: Path) -> None:
    made = (
        "git init -q w && cd w && echo text > f && git add f && "
        "git -c user.name=A -c user.email=a@b commit -q -m one && "
        "git clone -q --bare . ../hub.git && git -C ../hub.git update-server-info"
    )
    subprocess.run(["sh", "-c", made], cwd=tmp_path, check=True)
    with (
        web_server(tmp_path) as port,
        machine("web.test", hosts={"web.test": f"127.0.0.1:{port}"}) as guest,
    ):
        shown = script(guest, "git clone -q http://web.test/hub.git && cat hub/f")
        refused = script(guest, "git clone -q http://other.test/hub.git two")
    assert shown == "text\n"
    assert "unable to access 'http://other.test/hub.git/': Could not resolve host" in refused


def test_names_are_looked_up() -> None:
    with machine("web.test", hosts={"web.test": "127.0.0.1"}) as guest:
        address = script(guest, "dig +short web.test").strip()
        assert address.startswith("198.18.")
        assert script(guest, "host web.test") == f"web.test has address {address}\n"
        assert f"web.test.\t\t60\tIN\tA\t{address}\n" in script(
            guest, "dig +noall +answer web.test"
        )
        assert f"Address: {address}\n" in script(guest, "nslookup web.test")
        assert script(guest, f"host {address}").endswith(" domain name pointer web.test.\n")
        assert script(guest, f"dig -x {address} +short") == "web.test.\n"
        missing = script(guest, "host other.test; echo $?")
        assert missing.startswith("Host other.test not found: 3(NXDOMAIN)\n1\n")


def test_nc_reaches_a_port() -> None:
    def greet(connection: socket.socket) -> None:
        connection.sendall(b"hello\n")

    with (
        server(greet) as port,
        machine("web.test", hosts={"web.test": f"127.0.0.1:{port}"}) as guest,
    ):
        shown = script(guest, "nc web.test 80 < /dev/null; nc -zv web.test 80; echo $?")
    assert shown.startswith("hello\nConnection to web.test (198.18.")
    assert shown.endswith(") 80 port [tcp/http] succeeded!\n0\n")
