"""`wasmsand playground` and `wasmsand serve --playground`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.command import COMMAND, wasmsand
from tests.http.server import Client, DidNotStart, ServerProcess, serving
from wasmsand.cli import playground
from wasmsand.cli.failure import CliError

FRONT_END = Path(playground.__file__).resolve().parent.parent / "_playground"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("<p>hello")
    (tmp_path / "headers.json").write_text(json.dumps({"*": {"X-All": "yes"}}))
    return tmp_path


def test_a_built_page_is_served_until_the_end(site: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "playground", "--port", "0", "--directory", str(site)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        url = line.rpartition("playground at ")[2].strip()
        assert url.startswith("http://127.0.0.1:")
        answer = Client(url).ask("GET", "/")
        assert (answer.status, answer.headers["X-All"]) == (200, "yes")
        assert answer.body == b"<p>hello"
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_allowed_hosts_are_in_the_policy_of_the_worker_that_asks_them(site: Path) -> None:
    worker = "kernel-worker.js"
    (site / worker).write_text("")
    policy = {
        "Content-Security-Policy": "default-src 'none'; connect-src 'self'; worker-src 'self'"
    }
    (site / "headers.json").write_text(json.dumps({worker: policy, "index.html": policy}))
    rules = ("GET api.example.com/v1/*", "*.example.org:8443", "*:443")
    options = [word for rule in rules for word in ("--allow-net", rule)]
    process = subprocess.Popen(
        [*COMMAND, "playground", "--port", "0", "--directory", str(site), *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        client = Client(process.stderr.readline().rpartition("playground at ")[2].strip())
        found = client.ask("GET", f"/{worker}").headers["Content-Security-Policy"]
        assert found == (
            "default-src 'none'; connect-src 'self' https://api.example.com:* "
            "http://api.example.com:* https://*.example.org:8443 http://*.example.org:8443 "
            "https://*:443 http://*:443; worker-src 'self'"
        )
        assert (
            client.ask("GET", "/").headers["Content-Security-Policy"]
            == (policy["Content-Security-Policy"])
        )
        network = json.loads(client.ask("GET", "/network.json").body)
        assert network == {"allow": list(rules), "deny": []}
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_a_network_cannot_be_allowed_for_a_page(site: Path) -> None:
    found = wasmsand("playground", "--directory", str(site), "--allow-net", "10.0.0.0/8")
    assert found.returncode != 0
    assert b"names, not networks" in found.stderr


def test_a_page_that_is_not_built_names_the_command_that_builds_it(tmp_path: Path) -> None:
    found = wasmsand("playground", "--directory", str(tmp_path))
    assert found.returncode != 0
    assert b"not built" in found.stderr
    assert b"`make web`" in found.stderr


def test_an_installed_package_names_the_other_playground(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground, "repository_root", lambda: None)
    with pytest.raises(CliError, match=r"make web.*wasmsand serve --playground"):
        playground._site()


def test_a_port_in_use_is_named(site: Path) -> None:
    with serving() as server:
        port = str(urlsplit(server.url).port)
        found = wasmsand("playground", "--port", port, "--directory", str(site))
    assert found.returncode != 0
    assert b"--port" in found.stderr


def test_a_server_without_the_option_has_no_page() -> None:
    with serving() as server:
        answer = Client(server.url).ask("GET", "/playground/")
    assert answer.status == 404
    assert "--playground" in answer.error[2]


@pytest.mark.skipif(FRONT_END.is_dir(), reason="the front end is built")
def test_a_package_without_the_page_says_so() -> None:
    with pytest.raises(DidNotStart, match="make web"):
        ServerProcess("--playground")


needs_front_end = pytest.mark.skipif(
    not FRONT_END.is_dir(), reason="the front end is not built: `make web`"
)


@needs_front_end
def test_a_server_with_a_page_makes_a_token_and_prints_it_in_the_fragment() -> None:
    with serving("--playground") as server:
        assert server.process.stderr is not None
        address = urlsplit(server.process.stderr.readline().split()[-1])
        assert address.path == "/playground/"
        assert not address.query
        token = address.fragment.removeprefix("token=")
        assert len(token) > 40
        nobody = Client(server.url)
        assert nobody.ask("POST", "/v1/sandboxes", {}).status == 401
        assert nobody.ask("GET", "/playground").status == 308
        assert nobody.ask("GET", "/playground/none.js").status == 404
        page = nobody.ask("GET", "/playground/")
        assert page.status == 200
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-eval" not in policy
        assert Client(server.url, token).create().startswith("/v1/sandboxes/")


@needs_front_end
def test_a_server_with_tokens_prints_none() -> None:
    with serving("--playground", environ={"WASMSAND_TOKENS": "me:0123456789abcdef"}) as server:
        assert server.process.stderr is not None
        line = server.process.stderr.readline()
        assert line.endswith("/playground/\n")
        assert Client(server.url, "0123456789abcdef").create()
