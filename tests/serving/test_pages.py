"""Files of a web page, and the small server for them."""

from __future__ import annotations

import http.client
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from wasmsand.serving.page_server import page_server
from wasmsand.serving.pages import Pages, PagesMissing

pytestmark = pytest.mark.no_userland


@pytest.fixture
def site(tmp_path: Path) -> Path:
    place = tmp_path / "site"
    (place / "assets").mkdir(parents=True)
    (place / "index.html").write_text("<p>hello")
    (place / "main.js").write_text("1")
    (place / "assets" / "aa.bin").write_bytes(b"\x00\x01" * 100_000)
    headers = {"*": {"X-All": "yes"}, "main.js": {"Content-Security-Policy": "default-src 'none'"}}
    (place / "headers.json").write_text(json.dumps(headers))
    (tmp_path / "secret.txt").write_text("not for the web")
    os.symlink(tmp_path / "secret.txt", place / "link.txt")
    return place


@pytest.fixture
def connection(site: Path) -> Iterator[http.client.HTTPConnection]:
    server = page_server(Pages(site), 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    yield connection
    connection.close()
    server.shutdown()
    thread.join()
    server.server_close()


def ask(
    connection: http.client.HTTPConnection, path: str, method: str = "GET"
) -> tuple[int, dict[str, str], bytes]:
    connection.request(method, path)
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    return answer.status, headers, answer.read()


def test_files_come_with_their_headers(connection: http.client.HTTPConnection) -> None:
    status, headers, body = ask(connection, "/")
    assert (status, body, headers["x-all"]) == (200, b"<p>hello", "yes")
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == "no-cache"
    assert "content-security-policy" not in headers
    _, headers, _ = ask(connection, "/main.js?version=2")
    assert headers["content-security-policy"] == "default-src 'none'"
    _, headers, body = ask(connection, "/assets/aa.bin")
    assert (len(body), "immutable" in headers["cache-control"]) == (200_000, True)
    status, headers, body = ask(connection, "/assets/aa.bin", "HEAD")
    assert (status, headers["content-length"], body) == (200, "200000", b"")


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "//etc/passwd",
        "/assets/../../secret.txt",
        "/link.txt",
        "/assets",
        "/index.html%00.js",
        "/none",
    ],
)
def test_nothing_else_is_found(connection: http.client.HTTPConnection, path: str) -> None:
    status, _, body = ask(connection, path)
    assert status == 404
    assert b"not for the web" not in body


def test_other_methods_are_refused(connection: http.client.HTTPConnection) -> None:
    assert ask(connection, "/", "DELETE")[0] == 501


@pytest.mark.parametrize("missing", ["index.html", "headers.json"])
def test_a_directory_without_a_page_is_refused(site: Path, missing: str) -> None:
    (site / missing).unlink()
    with pytest.raises(PagesMissing, match=missing):
        Pages(site)
