"""The host's wall clock jumps, by years, while sandboxes work and between two servers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.http.server import Client, ServerProcess

_YEAR = 365 * 24 * 3600
_LIFETIME = 3600


def _server(tmp_path: Path) -> ServerProcess:
    return ServerProcess(
        "--workers", "1", "--store", str(tmp_path / "store"),
        environ={"WASMSAND_TEST_CLOCK": str(tmp_path / "clock")},
        module="tests.http.jumping_clock",
    )  # fmt: skip


def _jump(tmp_path: Path, seconds: int) -> None:
    # The rename is atomic, so the server never reads half of a number.
    (tmp_path / "new").write_text(str(seconds))
    (tmp_path / "new").rename(tmp_path / "clock")


def _left(client: Client, sandbox: str) -> float:
    return float(client.ask("GET", sandbox).json["expires_in_seconds"])


def test_nothing_ends_and_nothing_lives_longer_when_the_clock_jumps(tmp_path: Path) -> None:
    _jump(tmp_path, 0)
    server = _server(tmp_path)
    client = Client(server.url)
    sandbox = client.create(lifetime_seconds=_LIFETIME)
    this_year = int(client.run(sandbox, "echo kept > file; date +%Y").json["stdout"])
    with ThreadPoolExecutor(1) as pool:
        for years in (10, -10):
            command = "touch began; while [ ! -e jumped ]; do sleep 0.05; done; date +%Y"
            running = pool.submit(client.run, sandbox, command, timeout_ms=600_000)
            while client.ask("GET", f"{sandbox}/files?path=began").status != 200:
                pass
            _jump(tmp_path, years * _YEAR)
            assert client.run(sandbox, "rm began; touch jumped").json["exit_code"] == 0
            ended = running.result(120).json
            assert ended["exit_code"] == 0
            assert abs(int(ended["stdout"]) - this_year - years) <= 1
            assert client.run(sandbox, "rm jumped; sleep 600", timeout_ms=200).json["timed_out"]
            assert 0 < _left(client, sandbox) <= _LIFETIME
            # To the disk and back.
            assert client.ask("POST", f"{sandbox}/pause", {}).status == 200
            assert client.run(sandbox, "cat file").json["stdout"] == "kept\n"
            assert 0 < _left(client, sandbox) <= _LIFETIME
    assert server.terminate()[0] == 0


def test_a_server_that_starts_with_an_old_clock_keeps_lifetimes_bounded(tmp_path: Path) -> None:
    _jump(tmp_path, 0)
    first = _server(tmp_path)
    client = Client(first.url)
    sandbox = client.create()
    client.run(sandbox, "echo kept > file")
    longest = _left(client, sandbox)
    assert first.terminate()[0] == 0
    _jump(tmp_path, -10 * _YEAR)
    second = _server(tmp_path)
    client = Client(second.url)
    assert client.run(sandbox, "cat file").json["stdout"] == "kept\n"
    assert 0 < _left(client, sandbox) <= longest + 60
    assert second.terminate()[0] == 0
