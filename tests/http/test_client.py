"""`Sandbox.connect`: what is particular to a remote sandbox. The rest is in tests/sdk."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.http.server import Client, ServerProcess, serving
from tests.waiting import wait_until
from wasmsand import (
    ConnectionLostError,
    NotFoundError,
    Sandbox,
    SandboxClosedError,
    SandboxOptions,
    ServerError,
)

TOKEN = "a-token-for-this-test"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def sandboxes(client: Client) -> int:
    """How many sandboxes the server has."""
    return len(client.ask("GET", "/v1/sandboxes").json["sandboxes"])


def wait_for_sandboxes(client: Client, count: int) -> None:
    """Wait until the server has that many sandboxes."""
    began = time.monotonic()
    while sandboxes(client) != count:
        assert time.monotonic() - began < 60
        time.sleep(0.05)


def test_the_sandbox_is_on_the_server_until_it_is_killed(client: Client) -> None:
    with Sandbox.connect(client.url) as sandbox:
        assert sandboxes(client) == 1
        assert sandbox.commands.run("echo there").stdout == "there\n"
    assert sandboxes(client) == 0


def test_a_sandbox_that_nobody_holds_is_killed(client: Client) -> None:
    sandbox = Sandbox.connect(client.url)
    assert sandboxes(client) == 1
    del sandbox
    gc.collect()
    wait_for_sandboxes(client, 0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # of threads, from 3.12 on
def test_a_sandbox_that_its_process_forgets_expires() -> None:
    with serving("--idle-seconds", "1") as server:
        child = os.fork()
        if child == 0:
            Sandbox.connect(server.url)
            os._exit(0)
        os.waitpid(child, 0)
        client = Client(server.url)
        wait_for_sandboxes(client, 0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # of threads, from 3.12 on
def test_a_forked_process_does_not_disturb_its_parent(client: Client) -> None:
    sandbox = Sandbox.connect(client.url)
    assert sandbox.commands.run("echo before").stdout == "before\n"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = int(sandbox.commands.run("echo child").stdout != "child\n")
            del sandbox
            gc.collect()
            time.sleep(0.3)
        finally:
            os._exit(status)
    for number in range(20):
        assert sandbox.commands.run(f"echo {number}").stdout == f"{number}\n"
    assert os.waitpid(child, 0)[1] == 0
    assert sandbox.commands.run("echo after").stdout == "after\n"
    sandbox.kill()


def test_an_expired_sandbox_says_so() -> None:
    with serving("--idle-seconds", "1") as server:
        sandbox = Sandbox.connect(server.url)
        wait_for_sandboxes(Client(server.url), 0)
        with pytest.raises(SandboxClosedError, match="it expired"):
            sandbox.commands.run("true")
        sandbox.kill()


def test_a_token_is_required_if_the_server_has_one(client: Client) -> None:
    with serving(environ={"WASMSAND_TOKENS": TOKEN}) as server:
        with Sandbox.connect(server.url, token=TOKEN) as sandbox:
            assert sandbox.commands.run("echo in").stdout == "in\n"
        for wrong in (None, "wrong"):
            with pytest.raises(ServerError, match="token is missing or unknown") as caught:
                Sandbox.connect(server.url, token=wrong)
            assert (caught.value.code, caught.value.status) == ("unauthorized", 401)


def test_a_quota_is_a_server_error() -> None:
    with serving("--max-sandboxes", "1") as server, Sandbox.connect(server.url):
        with pytest.raises(ServerError, match="--max-sandboxes") as caught:
            Sandbox.connect(server.url)
        assert caught.value.code == "server_full"


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8750",
        "ftp://127.0.0.1",
        "http://",
        "http://h/?a=b",
        "http://user@h",
        "",
        "http://[::1",
        "http://h:99999",
    ],
)
def test_invalid_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        Sandbox.connect(url)


def test_a_directory_of_tools_cannot_be_sent(client: Client) -> None:
    with pytest.raises(ValueError, match="wasm_dir"):
        Sandbox.connect(client.url, options=SandboxOptions(wasm_dir="/tmp"))


def test_an_unreachable_server_is_reported() -> None:
    port = free_port()
    with pytest.raises(ConnectionLostError, match=rf"127\.0\.0\.1:{port}.*Connection refused"):
        Sandbox.connect(f"http://127.0.0.1:{port}")


def test_another_kind_of_server_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            connection.close()

        threading.Thread(target=answer).start()
        with pytest.raises(ServerError, match="not a response from wasmsand: b'hello'"):
            Sandbox.connect(f"http://127.0.0.1:{listener.getsockname()[1]}")


def test_a_restarted_server_has_lost_its_sandboxes() -> None:
    server = ServerProcess()
    sandbox = Sandbox.connect(server.url)
    idle = Sandbox.connect(server.url)
    outcome: list[BaseException] = []

    def run() -> None:
        try:
            sandbox.commands.run("touch begun; sleep 60")
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not sandbox.files.exists("begun"):
        time.sleep(0.02)
    server.terminate(signal.SIGKILL)
    # A waiting call fails at once.
    thread.join(timeout=30)
    assert [type(error) for error in outcome] == [ConnectionLostError]
    assert "create a new one" in str(outcome[0])
    # So does a new call, even on a started command.
    began = time.monotonic()
    with pytest.raises(ConnectionLostError, match="Connection refused"):
        idle.files.read("/etc/passwd")
    assert time.monotonic() - began < 30

    port = server.url.rpartition(":")[2]
    with serving("--port", port) as again:
        assert again.url == server.url
        with pytest.raises(SandboxClosedError, match="the server was restarted"):
            idle.commands.run("true")
        with Sandbox.connect(server.url) as fresh:
            assert fresh.commands.run("echo back").stdout == "back\n"
    sandbox.kill()
    idle.kill()


def test_a_started_command_hears_that_the_server_is_gone() -> None:
    server = ServerProcess()
    sandbox = Sandbox.connect(server.url)
    command = sandbox.commands.start("sleep 60")
    threading.Timer(0.3, server.terminate, [signal.SIGKILL]).start()
    began = time.monotonic()
    with pytest.raises(ConnectionLostError):
        command.wait()
    assert time.monotonic() - began < 30
    sandbox.kill()


def test_connections_are_kept_and_closed_ones_replaced(client: Client) -> None:
    with serving("--keep-alive-seconds", "1") as server, Sandbox.connect(server.url) as sandbox:
        for _ in range(3):
            sandbox.files.exists("/etc")
        time.sleep(2)
        assert sandbox.commands.run("echo again").stdout == "again\n"


def test_a_file_beyond_the_upload_limit_is_refused() -> None:
    with serving("--max-upload-bytes", "1000000") as server, Sandbox.connect(server.url) as sandbox:
        with pytest.raises(ServerError, match="--max-upload-bytes") as caught:
            sandbox.files.write("big", b"x" * 8_000_000)
        assert caught.value.code == "body_too_large"
        sandbox.files.write("small", b"x" * 900_000)


def test_large_contents_go_both_ways(client: Client) -> None:
    data = os.urandom(20_000_000)
    with Sandbox.connect(client.url) as sandbox:
        sandbox.files.write("data", data)
        assert sandbox.files.read("data") == data
        assert sandbox.commands.run("cat data").stdout_bytes == data


def test_many_threads_share_one_sandbox(client: Client) -> None:
    with Sandbox.connect(client.url) as sandbox:

        def work(number: int) -> str:
            return sandbox.commands.run(f"echo {number}").stdout

        with ThreadPoolExecutor(24) as pool:
            assert list(pool.map(work, range(24))) == [f"{number}\n" for number in range(24)]


def test_errors_keep_their_errno_and_path(client: Client) -> None:
    with Sandbox.connect(client.url) as sandbox:
        with pytest.raises(NotFoundError) as caught:
            sandbox.files.read("/no/where")
        assert (caught.value.errno_name, caught.value.path) == ("ENOENT", "/no/where")


def test_a_command_that_is_forgotten_goes_on(client: Client) -> None:
    with Sandbox.connect(client.url) as sandbox:
        command = sandbox.commands.start("for i in $(seq 20000); do echo line $i; done; echo > end")
        del command
        gc.collect()
        # The command does not wait for a reader that is gone.
        wait_until(lambda: sandbox.files.exists("end"), seconds=60)


def test_a_client_with_many_open_files_keeps_its_connections(server: ServerProcess) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("this host allows too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    files = [open(os.devnull) for _ in range(1100)]  # noqa: SIM115  (they are closed below)
    try:
        with Sandbox.connect(server.url) as sandbox:
            for number in range(3):
                assert sandbox.commands.run(f"echo {number}").stdout == f"{number}\n"
    finally:
        for file in files:
            file.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_variables_that_a_client_has_set_stay_with_the_sandbox(client: Client) -> None:
    sandbox = Sandbox.connect(client.url, options=SandboxOptions(env={"KEPT": "1", "GONE": "2"}))
    sandbox.env.set("NEW", "3")
    sandbox.env.unset("GONE")
    sandbox.disconnect()
    with Sandbox.connect(client.url, id=sandbox.id) as found:
        assert found.env.chosen() == {"KEPT": "1", "NEW": "3"}
        assert found.commands.run("echo $KEPT$GONE$NEW").stdout == "13\n"
        found.env.set("NEW", "4")
        found.commands.run("true")
        with Sandbox.connect(client.url, id=sandbox.id) as other:
            assert other.commands.run("echo $NEW").stdout == "4\n"
        snapshot = found.snapshot()
        found.env.set("NEW", "5")
        found.commands.run("true")
        found.restore(snapshot)
        assert found.commands.run("echo $NEW").stdout == "4\n"
    with Sandbox.connect(client.url, id=sandbox.id) as found:
        assert found.commands.run("echo $NEW").stdout == "4\n"
        found.kill()


def test_a_client_leaves_a_server_that_has_ended() -> None:
    with serving() as server:
        sandbox = Sandbox.connect(server.url)
        sandbox.env.set("NAME", "value")
    sandbox.disconnect()
