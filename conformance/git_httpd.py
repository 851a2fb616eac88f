#!/usr/bin/python3
"""A small web server in Apache's place, for git's tests over HTTP.

Owns what the suite's `lib-httpd/apache.conf` asks for: CGI programs, files, redirects, passwords
and the access log. Rules: it is started as Apache is (`-d ROOT -c "Listen HOST:PORT" -k start`) and
needs only Python's own library, so that it runs natively and in the sandbox alike; passwords are
those of the suite (user@host, pass@host). It has no WebDAV, proxy, TLS or HTTP/2.
"""

from __future__ import annotations

import base64
import http.server
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import IO

_VERSION = "Server version: Apache/2.4.62 (a stand-in)"
_PASSWORD = "Basic " + base64.b64encode(b"user@host:pass@host").decode()
_PASSED = (
    "PATH", "GIT_TRACE", "GIT_CONFIG_NOSYSTEM", "GIT_TEST_SIDEBAND_ALL", "LANG", "LC_ALL",
    "PERL_PATH", "GIT_EXEC_PATH",
)  # fmt: skip
_REDIRECTS: tuple[tuple[str, str, int], ...] = (
    (r"^/dumb-redir/(.*)$", r"/dumb/\1", 301),
    (r"^/smart-redir-perm/(.*)$", r"/smart/\1", 301),
    (r"^/smart-redir-temp/(.*)$", r"/smart/\1", 302),
    (r"^/smart-redir-auth/(.*)$", r"/auth/smart/\1", 301),
    (r"^/smart-redir-limited/(.*)/info/refs$", r"/smart/\1/info/refs", 301),
    (r"^/ftp-redir/(.*)$", r"ftp://localhost:1000/\1", 302),
    (r"^/loop-redir/(?:x-){20}(.*)$", r"/\1", 302),
    (r"^/loop-redir/(.*)$", r"/loop-redir/x-\1", 302),
    (r"^/insane-redir/(.*)$", r"/intern-redir/\1/foo", 301),
    (r"^/redir-objects/(.*/objects/.*)$", r"/dumb/\1", 301),
)
_REWRITES = (
    (r"^/intern-redir/(.*)/foo$", r"/smart/\1"),
    (r"^/redir-objects/(.*/info/refs)$", r"/dumb/\1"),
)
_SCRIPTS = (
    (r"^/smart/incomplete_length/git-upload-pack", "incomplete-length-upload-pack-v2-http.sh"),
    (r"^/smart/incomplete_body/git-upload-pack", "incomplete-body-upload-pack-v2-http.sh"),
    (r"^/smart/no_report/git-receive-pack", "error-no-report.sh"),
    (r"/error_git_upload_pack/(?:.*)/git-upload-pack", "error.sh"),
    (r"/smart_*[^/]*(/.*)", "git-http-backend"),
    (r"^/broken_smart(/.*)", "broken-smart-http.sh"),
    (r"^/error_smart(/.*)", "error-smart-http.sh"),
    (r"^/error(/.*)", "error.sh"),
    (r"/one_time_perl(/.*)", "apply-one-time-perl.sh"),
    (r"/custom_auth(/.*)", "nph-custom-auth.sh"),
)
_PRIVATE = (
    r"^/auth/",
    r"^/auth-push/.*/git-receive-pack$",
    r"^/auth-fetch/.*/git-upload-pack$",
)
_PART = 65536


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path
    user = "-"
    sent = 0

    def respond(self) -> None:
        """Do what the first rule says that the path fits."""
        self.user, self.sent = "-", 0
        path, _, query = self.path.partition("?")
        path = urllib.parse.unquote(path)
        if self._is_redirected(path, query):
            return
        for pattern, target in _REWRITES:
            path = re.sub(pattern, target, path)
        if not self._is_allowed(path, query):
            return
        for pattern, name in _SCRIPTS:
            if (found := re.search(pattern, path)) is not None:
                self._run_script(path, name, found[1] if found.re.groups else "", query)
                return
        self._send_file(path)

    do_GET = do_HEAD = do_POST = respond

    # Rules before anything is sent.

    def _is_redirected(self, path: str, query: str) -> bool:
        rest = f"?{query}" if query else ""
        if (to := re.match(r"^/redir-to/(.*)$", path)) is not None:
            self._redirect(f"/really-redir-to?path={to[1]}&qs={query}", 302)
            return True
        if path == "/really-redir-to":
            wanted = re.match(r"^path=(.*)&qs=(.*)$", query)
            if wanted is None or wanted[1].startswith("502/"):
                self._end(HTTPStatus.BAD_GATEWAY)
            else:
                self._redirect(f"/{wanted[1]}?{wanted[2]}", 302)
            return True
        for pattern, target, status in _REDIRECTS:
            if re.match(pattern, path) is not None:
                self._redirect(re.sub(pattern, target, path) + rest, status)
                return True
        return False

    def _redirect(self, to: str, status: int) -> None:
        if to.startswith("/"):
            to = f"http://{self.headers['Host']}{to}"
        self._end(HTTPStatus(status), Location=to)

    def _is_allowed(self, path: str, query: str) -> bool:
        half = path.startswith("/half-auth-complete/") and (
            "service=git-receive-pack" in query or path.endswith("/git-receive-pack")
        )
        if half or any(re.search(pattern, path) for pattern in _PRIVATE):
            if self.headers.get("Authorization") != _PASSWORD:
                realm = "Git Access" if half else "git-auth"
                challenge = {"WWW-Authenticate": f'Basic realm="{realm}"'}
                self._end(HTTPStatus.UNAUTHORIZED, **challenge)
                return False
            self.user = "user@host"
        if "/smart_headers/" in path:
            magic = (self.headers.get("x-magic-one"), self.headers.get("x-magic-two"))
            if magic != ("abra", "cadabra"):
                self._end(HTTPStatus.FORBIDDEN)
                return False
        return True

    # Answers.

    def _end(self, status: HTTPStatus, **headers: str) -> None:
        """Answer with a page that names the status."""
        for _ in self._body():
            pass
        page = f"<html><title>{status.value} {status.phrase}</title></html>\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=iso-8859-1")
        self.send_header("Content-Length", str(len(page)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self._send(page)
        self._log(status)

    def _send(self, data: bytes) -> None:
        if self.command != "HEAD":
            self.wfile.write(data)
            self.sent += len(data)

    def _send_file(self, path: str) -> None:
        file = self.root / "www" / path.removeprefix("/dumb/").lstrip("/")
        if not file.is_file():
            self._end(HTTPStatus.NOT_FOUND)
            return
        content, status = file.read_bytes(), HTTPStatus.OK
        size = len(content)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        headers = {"Content-Type": "text/plain", "Accept-Ranges": "bytes"}
        if wanted is not None:
            first, last = int(wanted[1]), min(int(wanted[2] or size), size - 1)
            if first > last:
                self._end(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
                return
            content, status = content[first : last + 1], HTTPStatus.PARTIAL_CONTENT
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        self.send_response(status)
        for name, value in (*headers.items(), ("Content-Length", str(len(content)))):
            self.send_header(name, value)
        self.end_headers()
        self._send(content)
        self._log(status)

    def _body(self) -> Iterator[bytes]:
        """The body of the request, part by part."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length", 0))
        while left and (part := self.rfile.read(min(left, _PART))):
            left -= len(part)
            yield part

    # CGI.

    def _variables(self, path: str, rest: str, query: str) -> dict[str, str]:
        passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
        variables = {
            **passed,
            "GATEWAY_INTERFACE": "CGI/1.1",
            "SERVER_PROTOCOL": self.request_version,
            "REQUEST_METHOD": self.command,
            "QUERY_STRING": query,
            "PATH_INFO": rest,
            "PATH_TRANSLATED": f"{self.root}/www{rest}",
            "REMOTE_ADDR": self.client_address[0],
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
        }
        if "Content-Length" in self.headers:
            variables["CONTENT_LENGTH"] = self.headers["Content-Length"]
        for name, value in self.headers.items():
            if name.lower() != "authorization" or "/custom_auth/" in path:
                variables["HTTP_" + name.upper().replace("-", "_")] = value
        if self.user != "-":
            variables["REMOTE_USER"] = self.user
        if "/smart_noexport/" not in path:
            variables["GIT_HTTP_EXPORT_ALL"] = ""
        if "/smart_custom_env/" in path:
            variables["GIT_COMMITTER_NAME"] = "Custom User"
            variables["GIT_COMMITTER_EMAIL"] = "custom@example.com"
        if "/smart_namespace/" in path:
            variables["GIT_NAMESPACE"] = "ns"
        if "/smart_v0/" in path:
            variables["GIT_PROTOCOL"] = ""
        elif "Git-Protocol" in self.headers:
            variables["GIT_PROTOCOL"] = self.headers["Git-Protocol"]
        return variables

    def _run_script(self, path: str, name: str, rest: str, query: str) -> None:
        folder = Path(os.environ["GIT_EXEC_PATH"]) if name.startswith("git-") else self.root
        with (self.root / "error.log").open("ab") as errors:
            process = subprocess.Popen(
                [str(folder / name)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=self._variables(path, rest, query),
            )
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdout as output:
            # A program may end without reading, but the client has to be read to the end.
            for part in self._body():
                with suppress(BrokenPipeError):
                    process.stdin.write(part)
            with suppress(BrokenPipeError):
                process.stdin.close()
            if name.startswith("nph-"):
                self._pass_on(output)
            else:
                self._send_output(path, output)
        process.wait()

    def _pass_on(self, output: IO[bytes]) -> None:
        """Send what a script writes, which has a status line of its own, as it is."""
        self.close_connection = True
        status = output.readline()
        self.wfile.write(status.rstrip() + b"\r\nConnection: close\r\n")
        while part := output.read(_PART):
            self._send(part)
        self._log(HTTPStatus(int(status.split()[1])))

    def _send_output(self, path: str, output: IO[bytes]) -> None:
        status, headers = "200 OK", []
        while line := output.readline().decode().strip():
            name, _, value = line.partition(":")
            if name.lower() == "status":
                status = value.strip()
            else:
                headers.append((name, value.strip()))
        if "/smart_cookies/" in path:
            headers.append(("Set-Cookie", "name=value"))
        code, _, phrase = status.partition(" ")
        self.send_response(int(code), phrase)
        for header in headers:
            self.send_header(*header)
        sized = any(name.lower() == "content-length" for name, _ in headers)
        send: Callable[[bytes], object] = self._send
        if not sized and self.request_version == "HTTP/1.1" and self.command != "HEAD":
            self.send_header("Transfer-Encoding", "chunked")
            send = self._send_chunk
        elif not sized:
            self.send_header("Connection", "close")
        self.end_headers()
        while part := output.read1(_PART):  # type: ignore[attr-defined]
            send(part)
        if send == self._send_chunk:
            self.wfile.write(b"0\r\n\r\n")
        self._log(HTTPStatus(int(code)))

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.sent += len(data)

    # The log.

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: see `_log`."""

    def _log(self, status: HTTPStatus) -> None:
        when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
        size = self.sent or "-"
        line = f'127.0.0.1 - {self.user} [{when}] "{self.requestline}" {status.value} {size}\n'
        with (self.root / "access.log").open("a", encoding="utf-8") as log:
            log.write(line)


def _option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


def main(arguments: list[str]) -> int:
    """What Apache's command does with these arguments; returns the exit status."""
    if arguments in (["-v"], ["-V"]):
        print(_VERSION)
        return 0
    root = Path(_option(arguments, "-d")).resolve()
    pid_file = root / "httpd.pid"
    action = _option(arguments, "-k")
    if action == "stop":
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
        pid_file.unlink()
        return 0
    if action == "start":
        command = [sys.executable, __file__, *arguments[:-1], "serve"]
        with (root / "error.log").open("ab") as errors:
            server = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        assert server.stdout is not None
        ready = server.stdout.readline()
        pid_file.write_text(str(server.pid))
        return 0 if ready else 1
    host, _, port = _option(arguments, "-c").split()[1].rpartition(":")
    _Handler.root = root
    with http.server.ThreadingHTTPServer((host, int(port)), _Handler) as served:
        served.daemon_threads = True
        print("ready", flush=True)
        os.close(1)
        served.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
