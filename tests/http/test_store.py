"""`wasmsand serve --store`: sandboxes that survive the server, pause and resume."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("msgspec", reason="pip install 'wasmsand[serve]'")

from tests.http.server import Client, DidNotStart, ServerProcess, write_tokens
from tests.waiting import wait_until
from wasmsand import (
    AsyncSandbox,
    ConnectionLostError,
    Network,
    Sandbox,
    SandboxClosedError,
    SandboxOptions,
    ServerError,
    StateError,
    StateFileError,
    StateLostError,
    UnsupportedError,
)

ALICE, BOB = "alice-0123456789abcdef", "bob-0123456789abcdef0"


class Stored:
    """A server with a store, which can be restarted on the same port."""

    def __init__(
        self, store: Path, *options: str, environ: Mapping[str, str] | None = None
    ) -> None:
        self.store = store
        self._options = ("--store", str(store), *options)
        self._environ = environ
        self.server = ServerProcess(*self._options, environ=environ)
        self.url = self.server.url
        self.errors = ""

    def restart(self, number: int = signal.SIGKILL) -> None:
        """End the server, and start another one."""
        self.end(number)
        port = str(urlsplit(self.url).port)
        self.server = ServerProcess(*self._options, "--port", port, environ=self._environ)

    def end(self, number: int = signal.SIGTERM) -> None:
        _, errors = self.server.terminate(number)
        self.errors += errors

    def client(self, token: str | None = None) -> Client:
        return Client(self.url, token)

    def state(self, identity: str) -> str:
        return str(self.client().ask("GET", f"/v1/sandboxes/{identity}").json["state"])

    def wait_until_stored(self, identity: str, before: float) -> None:
        """Wait until a state was stored that was taken after `before`."""

        def is_stored() -> bool:
            index = sqlite3.connect(self.store / "server.sqlite", timeout=30)
            try:
                row = index.execute("SELECT saved FROM states WHERE id = ?", (identity,)).fetchone()
            finally:
                index.close()
            return row is not None and row[0] > before + 0.5

        wait_until(is_stored, seconds=60)


@contextmanager
def stored(
    store: Path, *options: str, environ: Mapping[str, str] | None = None
) -> Iterator[Stored]:
    server = Stored(store, *options, environ=environ)
    try:
        yield server
    finally:
        server.end()


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_sessions_go_on_after_the_server_was_killed(tmp_path: Path, isolation: str) -> None:
    with stored(tmp_path / "store", "--isolation", isolation) as server:
        sandbox = Sandbox.connect(
            server.url, metadata={"task": "7"}, options=SandboxOptions(env={"A": "b"})
        )
        python, shell = sandbox.python(), sandbox.shell()
        python.run("rows = [3, 1, 2]")
        shell.run("cd /tmp; greet() { echo hello $1; }")
        sandbox.files.write("a.txt", "one")
        server.wait_until_stored(sandbox.id, time.time())
        server.restart()
        assert [info.state for info in Sandbox.list(server.url)] == ["paused"]
        assert python.run("rows.sort(); rows").value == [1, 2, 3]
        assert shell.run("greet you; pwd").stdout == "hello you\n/tmp\n"
        assert sandbox.files.read_text("a.txt") == "one"
        info = sandbox.info()
        assert (info.id, info.state, info.metadata) == (sandbox.id, "running", {"task": "7"})
        again = Sandbox.connect(server.url, id=sandbox.id)
        assert again.commands.run("echo $A").stdout == "b\n"
        assert again.sessions[0].run("rows").value == [1, 2, 3]  # type: ignore[union-attr]
        again.close()
        assert python.run("len(rows)").value == 3
        sandbox.kill()
        assert Sandbox.list(server.url) == []
        assert server.errors == ""


def test_after_random_kills_files_and_sessions_are_of_the_same_moment(tmp_path: Path) -> None:
    random.seed(16112026)
    count = "number += 1; open('number', 'w').write(str(number)); number"
    with stored(tmp_path / "store") as server:
        sandbox = Sandbox.connect(server.url)
        session = sandbox.python()
        session.run("number = 0; open('number', 'w').write('0')")
        server.wait_until_stored(sandbox.id, time.time())
        for _ in range(5):
            killer = threading.Timer(random.uniform(0.2, 4.0), server.server.process.kill)
            killer.start()
            with pytest.raises(ConnectionLostError):
                while True:  # until the server is killed, in the middle of a request or not
                    session.run(count)
            killer.join()
            server.restart()
            number = session.run("number").value
            assert sandbox.files.read_text("number") == str(number)
            assert session.run(count).value == number + 1
        assert number > 0


def test_everything_is_stored_when_the_server_is_terminated(tmp_path: Path) -> None:
    with stored(tmp_path / "store") as server:
        client = server.client()
        path = client.create(metadata={"a": "b"})
        python = f"{path}/python/" + client.ask("POST", f"{path}/python", {}).json["id"]
        shell = f"{path}/shells/" + client.ask("POST", f"{path}/shells", {}).json["id"]
        client.ask("POST", f"{python}/run", {"code": "x = 41"})
        client.ask("POST", f"{shell}/run", {"command": "cd /usr; y=5"})
        client.ask("PATCH", f"{path}/env", {"set": {"NAME": "value"}})
        server.restart(signal.SIGTERM)
        assert client.ask("POST", f"{python}/run", {"code": "x + 1"}).json["value"] == 42
        told = client.ask("POST", f"{shell}/run", {"command": "pwd; echo $y $NAME"}).json
        assert told["stdout"] == "/usr\n5\n"
        assert client.run(path, "echo $NAME").json["stdout"] == "value\n"
        assert server.errors == ""


def test_an_idle_sandbox_is_paused_and_comes_back(tmp_path: Path) -> None:
    with stored(tmp_path / "store", "--idle-pause", "1") as server:
        sandbox = Sandbox.connect(server.url)
        session = sandbox.python()
        session.run("x = 1")
        wait_until(lambda: server.state(sandbox.id) == "paused", seconds=60)
        assert session.run("x + 1").value == 2
        assert server.state(sandbox.id) == "running"
        sandbox.kill()


def test_a_running_command_keeps_a_sandbox_from_being_paused(tmp_path: Path) -> None:
    with stored(tmp_path / "store", "--idle-pause", "0.5") as server:
        sandbox = Sandbox.connect(server.url)
        handle = sandbox.commands.start("sleep 4; echo done; exit 3")
        with pytest.raises(StateError, match="a command runs"):
            sandbox.pause()
        time.sleep(2)
        assert server.state(sandbox.id) == "running"
        # The command ends while nobody asks. Its result is kept with the paused sandbox.
        wait_until(lambda: server.state(sandbox.id) == "paused", seconds=60)
        result = handle.wait()
        assert (result.stdout, result.exit_code) == ("done\n", 3)
        sandbox.kill()


def test_what_ran_is_named_when_it_is_lost(tmp_path: Path) -> None:
    with stored(tmp_path / "store") as server:
        sandbox = Sandbox.connect(server.url)
        handle = sandbox.commands.start("sleep 1000")
        sandbox.pause(running="drop")
        with pytest.raises(StateLostError, match="ended when the sandbox was stored"):
            handle.wait()
        assert sandbox.commands.run("echo alive").stdout == "alive\n"
        assert sandbox.commands.list() == []
        sandbox.kill()


def test_requests_at_once_resume_a_sandbox_once(tmp_path: Path) -> None:
    with stored(tmp_path / "store") as server:
        client = server.client()
        path = client.create()
        client.run(path, "echo $RANDOM$RANDOM > number")
        assert client.ask("POST", f"{path}/pause", {}).json["state"] == "paused"
        with ThreadPoolExecutor(20) as threads:
            answers = list(threads.map(lambda _: client.run(path, "cat number"), range(20)))
        assert {answer.status for answer in answers} == {200}
        assert len({answer.json["stdout"] for answer in answers}) == 1
        metrics = client.ask("GET", "/metrics").body.decode()
        assert "wasmsand_resume_seconds_count 1.0" in metrics


def test_pausing_and_resuming_at_once_loses_nothing(tmp_path: Path) -> None:
    with stored(tmp_path / "store") as server:
        client = server.client()
        path = client.create()

        def add(number: int) -> int:
            if number % 5 == 0:
                return client.ask("POST", f"{path}/pause", {}).status
            return client.run(path, f"echo {number} >> log").status

        with ThreadPoolExecutor(8) as threads:
            statuses = list(threads.map(add, range(60)))
        assert set(statuses) <= {200, 409}
        lines = client.run(path, "sort -n log").json["stdout"].split()
        assert lines == [str(number) for number in range(60) if number % 5]


def test_other_tokens_cannot_see_pause_or_connect(tmp_path: Path) -> None:
    tokens = write_tokens(
        tmp_path / "tokens",
        {"alice": {"token": ALICE, "trusted": True}, "bob": {"token": BOB, "trusted": True}},
    )
    with stored(tmp_path / "store", "--tokens-file", str(tokens)) as server:
        with Sandbox.connect(server.url, token=ALICE) as sandbox:
            identity = sandbox.id
            sandbox.disconnect()
        for _ in range(2):
            assert Sandbox.list(server.url, token=BOB) == []
            with pytest.raises(SandboxClosedError, match="no sandbox"):
                Sandbox.connect(server.url, id=identity, token=BOB)
            assert not Sandbox.kill_by_id(server.url, identity, token=BOB)
            bob = server.client(BOB)
            for method, part in (("POST", "pause"), ("POST", "resume"), ("GET", "snapshots")):
                answer = bob.ask(method, f"/v1/sandboxes/{identity}/{part}", {})
                assert answer.error[:2] == (404, "sandbox_not_found")
            assert [info.id for info in Sandbox.list(server.url, token=ALICE)] == [identity]
            server.restart()
        assert Sandbox.kill_by_id(server.url, identity, token=ALICE)
        assert not Sandbox.kill_by_id(server.url, identity, token=ALICE)
    # A server that does not know the token keeps its sandboxes, and shows them to nobody.


@pytest.mark.parametrize(
    "guess", ["sbx-0", "sbx-" + "0" * 24, "../x", "%00", "x" * 5000, "*", "load"]
)
def test_guessed_ids_find_nothing(tmp_path: Path, guess: str) -> None:
    with stored(tmp_path / "store") as server:
        server.client().create()
        with pytest.raises((SandboxClosedError, ServerError, ValueError)):
            Sandbox.connect(server.url, id=guess)
        assert len(Sandbox.list(server.url)) == 1


def test_a_quota_bounds_what_a_token_has_on_disk(tmp_path: Path) -> None:
    limits = {
        "token": ALICE,
        "trusted": True,
        "max_stored_bytes": 300_000,
        "max_stored_sandboxes": 2,
    }
    tokens = write_tokens(tmp_path / "tokens", {"alice": limits})
    with stored(tmp_path / "store", "--tokens-file", str(tokens)) as server:
        client = server.client(ALICE)
        path = client.create()
        client.run(path, "head -c 1000000 /dev/urandom > big")
        refused = client.ask("POST", f"{path}/pause", {})
        assert refused.error[:2] == (429, "quota_exceeded")
        assert "max_stored_bytes" in refused.error[2]
        assert client.run(path, "rm big; echo alive").json["stdout"] == "alive\n"
        assert client.ask("POST", f"{path}/pause", {}).status == 200
        client.create()
        assert client.ask("POST", "/v1/sandboxes", {}).error[:2] == (429, "quota_exceeded")
        states = sum(file.stat().st_size for file in (server.store / "states").iterdir())
        assert states < 300_000


@pytest.mark.parametrize("workers", ["1", "2"])
def test_idle_sandboxes_make_room_for_others(tmp_path: Path, workers: str) -> None:
    tokens = write_tokens(
        tmp_path / "tokens", {"alice": {"token": ALICE, "trusted": True, "max_sandboxes": 2}}
    )
    options = ("--tokens-file", str(tokens), "--workers", workers)
    with stored(tmp_path / "store", *options) as server:
        client = server.client(ALICE)
        paths = [client.create() for _ in range(4)]
        for number, path in enumerate(paths):
            client.run(path, f"echo {number} > f")
        assert [client.run(path, "cat f").json["stdout"] for path in paths] == [
            "0\n", "1\n", "2\n", "3\n"
        ]  # fmt: skip
        for number in range(200):  # also while others are being stored or have not ended yet
            at = number * 7 % 4 if number % 3 else 0
            assert client.run(paths[at], "cat f").json["stdout"] == f"{at}\n"
        listed = client.ask("GET", "/v1/sandboxes").json["sandboxes"]
        assert sum(each["state"] == "running" for each in listed) == 2


def test_metadata_is_listed_and_bounded(tmp_path: Path) -> None:
    with stored(tmp_path / "store") as server:
        client = server.client()
        one = client.create(metadata={"user": "a b&c=d", "app": "x"})
        client.create(metadata={"user": "other"})
        listed = Sandbox.list(server.url, metadata={"user": "a b&c=d"})
        assert [f"/v1/sandboxes/{info.id}" for info in listed] == [one]
        assert Sandbox.list(server.url, metadata={"user": "a b&c=d", "app": "y"}) == []
        assert Sandbox.list(server.url, state="paused") == []
        for bad in (
            {str(number): "" for number in range(33)},
            {"": "x"},
            {"n" * 65: "x"},
            {"n": "x" * 1025},
            {"n": 1},
            ["n"],
        ):
            answer = client.ask("POST", "/v1/sandboxes", {"metadata": bad})
            assert answer.error[:2] == (400, "invalid_value")
        for query in ("metadata=novalue", "state=dead", "limit=0", "limit=1001", "what=1"):
            assert client.ask("GET", f"/v1/sandboxes?{query}").status == 400
        first = client.ask("GET", "/v1/sandboxes?limit=1").json["sandboxes"]
        rest = client.ask("GET", f"/v1/sandboxes?after={first[0]['id']}").json["sandboxes"]
        assert len(first) == len(rest) == 1


def test_a_timeout_ends_a_paused_sandbox_too(tmp_path: Path) -> None:
    with stored(tmp_path / "store") as server:
        sandbox = Sandbox.connect(server.url)
        sandbox.set_timeout(2)
        sandbox.pause()
        assert 0 < (sandbox.info().expires_in_seconds or 0) <= 2
        server.restart()
        wait_until(lambda: Sandbox.list(server.url) == [], seconds=30)
        wait_until(lambda: not list((server.store / "states").iterdir()), seconds=30)
        with pytest.raises(SandboxClosedError):
            sandbox.commands.run("true")
        for bad in (0, -1, float("inf"), True, "1"):
            with pytest.raises((ValueError, TypeError)):
                sandbox.set_timeout(bad)  # type: ignore[arg-type]


def test_secrets_are_not_stored_and_have_to_be_given_again(tmp_path: Path) -> None:
    secret = "a-secret-that-no-file-may-contain"
    network = Network(
        allow=["127.0.0.1:9"], secrets={"127.0.0.1": {"Authorization": f"Bearer {secret}"}}
    )
    options = SandboxOptions(network=network)
    with stored(tmp_path / "store", "--allow-net", "127.0.0.1:9") as server:
        sandbox = Sandbox.connect(server.url, options=options)
        sandbox.files.write("f", "kept")
        sandbox.pause()
        assert sandbox.files.read_text("f") == "kept"  # the server still has them in memory
        sandbox.pause()
        server.restart()
        for file in [*server.store.rglob("*")]:
            if file.is_file():
                assert secret.encode() not in file.read_bytes()
                assert file.stat().st_mode & 0o077 == 0
        with pytest.raises(ServerError, match=r"secrets for 127\.0\.0\.1") as refused:
            sandbox.commands.run("true")
        assert refused.value.code == "secrets_needed"
        again = Sandbox.connect(server.url, id=sandbox.id, options=options)
        assert again.files.read_text("f") == "kept"
        assert again.network.rules().allow == ("127.0.0.1:9",)
        again.kill()


def test_snapshots_outlive_their_sandbox_and_the_server(tmp_path: Path) -> None:
    with stored(tmp_path / "store") as server:
        client = server.client()
        sandbox = Sandbox.connect(server.url)
        session = sandbox.python()
        session.run("x = 'before'")
        snapshot = sandbox.snapshot("first")
        session.run("x = 'after'")
        sandbox.kill()
        wait_until(
            lambda: client.ask("GET", "/v1/snapshots").json["snapshots"][0]["is_stored"], seconds=30
        )
        server.restart()
        with Sandbox.from_snapshot(snapshot) as copy:
            assert copy.sessions[0].run("x").value == "before"  # type: ignore[union-attr]
            copy.sessions[0].run("x = 1")
            copy.restore(snapshot)
            assert copy.sessions[0].run("x").value == "before"  # type: ignore[union-attr]
        (listed,) = client.ask("GET", "/v1/snapshots").json["snapshots"]
        assert (listed["sandbox"], listed["sessions"]) == (sandbox.id, ["program"])
        saved = client.ask("POST", f"/v1/snapshots/{listed['id']}/save", {})
        assert saved.status == 200
        assert client.ask("DELETE", f"/v1/snapshots/{listed['id']}").status == 200
        assert client.ask("GET", "/v1/snapshots").json["snapshots"] == []
        with Sandbox.load(io.BytesIO(saved.body)) as loaded:
            assert loaded.commands.run("echo alive").stdout == "alive\n"


def test_a_saved_sandbox_is_loaded_into_a_server(tmp_path: Path) -> None:
    saved = io.BytesIO()
    with Sandbox(env={"A": "b"}) as sandbox:
        sandbox.python().run("x = 5")
        sandbox.shell().run("cd /usr")
        sandbox.save(saved)
    with stored(tmp_path / "store") as server:
        saved.seek(0)
        with Sandbox.load(saved, url=server.url) as loaded:
            assert loaded.sessions[0].run("x").value == 5  # type: ignore[union-attr]
            assert loaded.sessions[1].run("pwd").stdout == "/usr\n"
            assert loaded.commands.run("echo $A").stdout == "b\n"
            loaded.pause()
            assert loaded.sessions[0].run("x + 1").value == 6  # type: ignore[union-attr]
        with pytest.raises(StateFileError, match="not a saved sandbox"):
            Sandbox.load(io.BytesIO(b"nothing of ours" * 100), url=server.url)
        client = server.client()
        answer = client.ask("POST", "/v1/sandboxes/load", body=saved.getvalue())
        assert answer.status == 201
        kinds = [session["kind"] for session in answer.json["sessions"]]
        assert kinds == ["python", "shell"]
        bad = client.ask("POST", "/v1/sandboxes/load?options=%7B%22env%22%3A%7B%7D%7D", body=b"x")
        assert bad.error[:2] == (400, "invalid_value")


def test_asynchronous_programs_have_the_same(tmp_path: Path) -> None:
    async def use(url: str) -> None:
        sandbox = await AsyncSandbox.connect(url, metadata={"a": "b"})
        session = await sandbox.python()
        await session.run("x = 5")
        await sandbox.pause()
        assert (await sandbox.info()).state == "paused"
        await sandbox.disconnect()
        (info,) = await AsyncSandbox.list(url, metadata={"a": "b"})
        async with await AsyncSandbox.connect(url, id=info.id) as again:
            assert again.id == info.id == sandbox.id
            assert (await again.sessions[0].run("x")).value == 5  # type: ignore[union-attr]
            await again.set_timeout(1000)
        assert len(await AsyncSandbox.list(url)) == 1
        assert await AsyncSandbox.kill_by_id(url, info.id)
        assert await AsyncSandbox.list(url) == []

    with stored(tmp_path / "store") as server:
        asyncio.run(use(server.url))


def test_every_sandbox_has_an_id_and_only_servers_have_timeouts() -> None:
    with Sandbox() as one, one.fork() as other:
        assert one.id != other.id
        assert one.info().state == "running"
        with pytest.raises(UnsupportedError, match="on a server"):
            one.set_timeout(5)
        with pytest.raises(UnsupportedError, match="on a server"):
            one.disconnect()
        assert one.commands.run("echo alive").stdout == "alive\n"


def test_one_server_has_a_store(tmp_path: Path) -> None:
    with stored(tmp_path / "store") as server:
        with pytest.raises(DidNotStart) as refused:
            ServerProcess("--store", str(server.store))
        assert f"process {server.server.process.pid} uses the store" in str(refused.value)
        assert "Traceback" not in str(refused.value)
        assert server.client().create()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir(mode=0o500)
    with pytest.raises(DidNotStart, match="Permission denied"):
        ServerProcess("--store", str(store))


def test_a_store_that_is_no_directory_or_no_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(DidNotStart, match="cannot open the store"):
        ServerProcess("--store", str(tmp_path / "file"))
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "server.sqlite").write_bytes(b"not a database" * 1000)
    with pytest.raises(DidNotStart, match="not a database") as refused:
        ServerProcess("--store", str(tmp_path / "store"))
    assert "Traceback" not in str(refused.value)


def test_damaged_and_foreign_files_are_reported_and_harm_nobody(tmp_path: Path) -> None:
    with stored(tmp_path / "store", "--verbose") as server:
        client = server.client()
        good, torn, gone, strange = (client.create() for _ in range(4))
        for path in (good, torn, gone, strange):
            client.run(path, "echo content > f")
        server.end()
        states = server.store / "states"
        for file in states.iterdir():
            if torn.rpartition("/")[2] in file.name:
                file.write_bytes(file.read_bytes()[:-20])
            if gone.rpartition("/")[2] in file.name:
                file.unlink()
        (states / "notes.txt").write_text("mine")
        (states / ("sbx-" + "0" * 24 + "-123.wsand")).write_text("left by a crash")
        index = sqlite3.connect(server.store / "server.sqlite")
        identity = strange.rpartition("/")[2]
        index.execute("UPDATE states SET record = ? WHERE id = ?", (b'{"owner": 1}', identity))
        index.execute(
            "INSERT INTO states VALUES ('../../etc', 'sandbox', x'00', '../../etc/passwd', 1, 1.0)"
        )
        index.commit()
        index.close()
        server.restart()
        assert client.run(good, "cat f").json["stdout"] == "content\n"
        assert client.run(torn, "cat f").error[:2] == (422, "state_file")
        assert client.run(gone, "cat f").error[:2] == (507, "store_failed")
        assert client.run(strange, "cat f").error[:2] == (404, "sandbox_not_found")
        assert client.ask("DELETE", torn).status == 200
        assert client.ask("DELETE", gone).status == 200
        assert (states / "notes.txt").read_text() == "mine"
        server.end()
        for told in ("states/'notes.txt'", "damaged record", "'../../etc'", "unfinished writes"):
            assert told in server.errors
        assert "Traceback" not in server.errors


def test_a_server_without_a_store_says_so(tmp_path: Path) -> None:
    server = ServerProcess()
    try:
        with Sandbox.connect(server.url) as sandbox:
            with pytest.raises(Exception, match="no store"):
                sandbox.pause()
            sandbox.resume()
            assert sandbox.info().state == "running"
    finally:
        server.terminate()


def records(server: Stored) -> list[dict[str, Any]]:
    index = sqlite3.connect(server.store / "server.sqlite")
    try:
        return [json.loads(row[0]) for row in index.execute("SELECT record FROM states")]
    finally:
        index.close()


def test_no_token_is_stored(tmp_path: Path) -> None:
    environ = {"WASMSAND_TOKENS": f"alice:{ALICE}"}
    with stored(tmp_path / "store", "--isolation", "none", environ=environ) as server:
        server.client(ALICE).create()
        assert [record["owner"] for record in records(server)] == ["alice"]
        for file in server.store.rglob("*"):
            assert not file.is_file() or ALICE.encode() not in file.read_bytes()
