"""`ps`, `kill` and `attach`."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

import pytest

pytest.importorskip("msgspec", reason="pip install 'wasmsand[serve]'")

from tests.cli.command import COMMAND
from tests.http.server import serving
from wasmsand import Sandbox

TOKEN = "a-token-of-these-tests"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = str(tmp_path_factory.mktemp("store"))
    environ = {"WASMSAND_TOKENS": f"me:{TOKEN},other:{TOKEN}-2"}
    with serving("--store", store, "--isolation", "none", environ=environ) as server:
        yield server.url


def wasmsand(
    url: str, *words: str, token: str = TOKEN, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        timeout=120,
        check=False,
        text=True,
        input=stdin,
        env={**os.environ, "WASMSAND_URL": url, "WASMSAND_TOKEN": token},
    )


def test_sandboxes_are_listed_attached_and_killed(url: str) -> None:
    made = [
        Sandbox.connect(url, token=TOKEN, metadata={"user": user, "bell": "\a"})
        for user in ("alice", "bob")
    ]
    ids = [sandbox.id for sandbox in made]
    made[0].files.write("a.txt", "content")
    made[0].pause()
    for sandbox in made:
        sandbox.disconnect()
    listed = wasmsand(url, "ps").stdout.splitlines()
    assert re.fullmatch(r"ID +STATE +CREATED +EXPIRES +METADATA", listed[0])
    assert re.fullmatch(
        rf"{ids[0]}  paused   [-\d]+ [:\d]+  30 d       bell=\? user=alice", listed[1]
    )
    assert wasmsand(url, "ps", "-q", "-m", "user=bob").stdout == f"{ids[1]}\n"
    assert wasmsand(url, "ps", "-q", "--state", "paused").stdout == f"{ids[0]}\n"
    assert wasmsand(url, "ps", "-q", token=f"{TOKEN}-2").stdout == ""

    attached = wasmsand(url, "attach", ids[0], stdin="cat a.txt; exit 3")
    assert (attached.stdout, attached.stderr, attached.returncode) == ("content", "", 3)
    assert wasmsand(url, "ps", "-q", "--state", "paused").stdout == ""

    foreign = wasmsand(url, "kill", *ids, token=f"{TOKEN}-2")
    assert foreign.returncode == 125
    assert foreign.stderr.count("no sandbox") == 2
    killed = wasmsand(url, "kill", ids[0], "sbx-0", ids[1])
    assert (killed.returncode, killed.stderr) == (125, "wasmsand: no sandbox 'sbx-0'\n")
    assert wasmsand(url, "ps", "-q").stdout == ""


@pytest.mark.parametrize("words", [["ps"], ["kill", "sbx-0"], ["attach", "sbx-0"]])
def test_a_server_is_needed(words: list[str]) -> None:
    told = wasmsand("", *words)
    assert told.returncode != 0
    assert "--connect" in told.stderr


def test_mistakes_are_named(url: str) -> None:
    told = wasmsand(url, "attach", "sbx-0", stdin="true")
    assert (told.returncode, "no sandbox 'sbx-0'" in told.stderr) == (125, True)
    assert "token" in wasmsand(url, "ps", token="another-token-than-that").stderr
    assert wasmsand("http://127.0.0.1:9", "ps").returncode == 125
