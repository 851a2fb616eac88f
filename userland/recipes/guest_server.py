"""Web servers inside the sandbox, for the tests of programs that use the network.

Owns the servers' programs, which Python runs in the sandbox, and their start. Rules: a server
listens on 127.0.0.1 of the sandbox; a test that needs TLS gets a private authority
(`/home/user/authority.pem`) and a server's certificate for `localhost` and 127.0.0.1 that it
signed; what a server stores or serves is in `/home/user/site`.
"""

from __future__ import annotations

from wasmsand import CommandResult, Sandbox

URL = "http://127.0.0.1:8000"
"""Of the server that `start_web_server` starts; `$U` in the scripts of tests."""

_SITE = "/home/user/site"
_WAIT = "until grep -qs ready {file}; do sleep 0.02; done; cat {file}"

_WEB_SERVER = r"""
import base64, gzip, http.server, json, os, re, ssl, sys, time, zlib

SITE = "/home/user/site"
tries = {}

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def respond(self):
        path, _, query = self.path.partition("?")
        body = self.body()
        if path == "/echo":
            headers = {name.lower(): value for name, value in self.headers.items()}
            text = body.decode("latin-1")
            told = dict(method=self.command, query=query, headers=headers, body=text)
            return self.answer(200, json.dumps(told).encode(), Content_Type="application/json")
        if count := re.fullmatch(r"/redirect/(\d+)", path):
            left = int(count[1])
            return self.answer(302, Location=f"/redirect/{left - 1}" if left > 1 else "/echo")
        if code := re.fullmatch(r"/status/(\d+)", path):
            return self.answer(int(code[1]), b"status\n")
        if path == "/away":
            return self.answer(302, Location=query)
        if path == "/compressed":
            known = self.headers.get("Accept-Encoding", "")
            if "gzip" in known:
                return self.answer(200, gzip.compress(b"plain\n" * 50), Content_Encoding="gzip")
            return self.answer(200, b"plain\n" * 50)
        if path == "/encoded":
            # The content is the query, in hexadecimal digits: ENCODING=CONTENT.
            encoding, _, content = query.partition("=")
            return self.answer(200, bytes.fromhex(content), Content_Encoding=encoding)
        if path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (b"one\n", b"two\n", b"three\n"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            return self.wfile.write(b"0\r\n\r\n")
        if path == "/slow":
            time.sleep(float(query))
            return self.answer(200, b"at last\n")
        if path == "/flaky":
            tries[query] = tries.get(query, 0) + 1
            if tries[query] < 3:
                return self.answer(503, b"later\n")
            return self.answer(200, b"now\n")
        if path == "/cookie":
            return self.answer(200, b"set\n", Set_Cookie=f"{query}; Path=/")
        if path == "/private":
            wanted = "Basic " + base64.b64encode(b"ann:secret").decode()
            if self.headers.get("Authorization") != wanted:
                return self.answer(401, b"who?\n", WWW_Authenticate='Basic realm="test"')
            return self.answer(200, b"welcome\n")
        file = SITE + path
        if self.command == "PUT":
            with open(file, "wb") as stored:
                stored.write(body)
            return self.answer(201, b"stored\n")
        if os.path.isdir(file):
            links = "".join(f'<a href="{name}">{name}</a>\n' for name in sorted(os.listdir(file)))
            return self.answer(200, links.encode(), Content_Type="text/html")
        if not os.path.isfile(file):
            return self.answer(404, b"not found\n")
        with open(file, "rb") as stored:
            content = stored.read()
        kind = "text/html" if file.endswith(".html") else "application/octet-stream"
        if part := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(part[1]), int(part[2] or len(content) - 1)
            if first >= len(content):
                return self.answer(416, Content_Range=f"bytes */{len(content)}")
            content, whole = content[first : last + 1], len(content)
            told = f"bytes {first}-{last}/{whole}"
            return self.answer(206, content, Content_Range=told, Content_Type=kind)
        self.answer(200, content, Content_Type=kind, Accept_Ranges="bytes")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = respond

    def log_message(self, *words):
        pass

port = int(sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/home/user/server.pem", "/home/user/server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(f"/tmp/server-{port}", "w") as told:
    told.write("ready\n")
server.serve_forever()
"""

_GIT_SERVER = r"""
import http.server, os, subprocess, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def respond(self):
        path, _, query = self.path.partition("?")
        if path.startswith("/private/"):
            if self.headers.get("Authorization") != "Basic YW5uOnNlY3JldA==":  # ann:secret
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="test"')
                self.send_header("Content-Length", "0")
                return self.end_headers()
            path = path.removeprefix("/private")
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            body = b"".join(parts)
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        variables = dict(
            PATH=os.environ["PATH"], GIT_PROJECT_ROOT="/home/user/site", GIT_HTTP_EXPORT_ALL="1",
            REQUEST_METHOD=self.command, PATH_INFO=path, QUERY_STRING=query,
            CONTENT_TYPE=self.headers.get("Content-Type", ""), CONTENT_LENGTH=str(len(body)),
            REMOTE_USER="ann", REMOTE_ADDR="127.0.0.1",
        )
        for name in ("Content-Encoding", "Git-Protocol", "Accept"):
            if name in self.headers:
                variables["HTTP_" + name.upper().replace("-", "_")] = self.headers[name]
        backend = ["git", "http-backend"]
        printed = subprocess.run(backend, input=body, env=variables, capture_output=True).stdout
        head, _, content = printed.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(headers.pop("Status", "200 OK").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = respond

    def log_message(self, *words):
        pass

port = int(sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
with open(f"/tmp/server-{port}", "w") as told:
    told.write("ready\n")
server.serve_forever()
"""

_CERTIFICATES = """
new_key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc'
openssl req -x509 $new_key -keyout authority.key -out authority.pem -days 30 -subj /CN=Authority
openssl req $new_key -keyout server.key -out server.csr -subj /CN=localhost
echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' > names
openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -days 30 -extfile names \
    -out server.pem
"""


def start_web_server(sandbox: Sandbox, port: int = 8000, *, tls: bool = False) -> None:
    """Start a server of HTTP/1.1, or of HTTPS. It has paths for what clients have to handle:
    /echo, /redirect/N, /away?URL, /status/N, /compressed, /encoded?ENCODING=HEX, /chunked,
    /slow?SECONDS, /flaky?NAME (works at the third try), /cookie?NAME=VALUE, /private (ann,
    secret). All other paths are files of the site, which can be put, and asked for in part."""
    if tls:
        made = sandbox.commands.run(_CERTIFICATES)
        assert made.exit_code == 0, made.stderr
    _start(sandbox, _WEB_SERVER, port, *(["tls"] if tls else []))


def start_git_server(sandbox: Sandbox, port: int = 8000) -> None:
    """Start a server of the bare repositories in the site, by `git http-backend`. Below /private/
    it wants a name (ann) and a password (secret)."""
    _start(sandbox, _GIT_SERVER, port)


def _start(sandbox: Sandbox, program: str, port: int, *words: str) -> None:
    sandbox.commands.run(["mkdir", "-p", _SITE])
    sandbox.files.write(f"/tmp/server-{port}.py", program)
    sandbox.commands.start(["python3", f"/tmp/server-{port}.py", str(port), *words])
    assert sandbox.commands.run(_WAIT.format(file=f"/tmp/server-{port}")).stdout == "ready\n"


def run(sandbox: Sandbox, script: str) -> CommandResult:
    """Run a script that knows the server as `$U`."""
    return sandbox.commands.run(f"U={URL}\n{script}")


def printed(sandbox: Sandbox, script: str) -> str:
    """What a script prints that must go well."""
    result = run(sandbox, script)
    assert (result.stderr, result.exit_code) == ("", 0)
    return result.stdout
