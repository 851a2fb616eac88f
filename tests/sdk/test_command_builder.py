"""Every interface builds the same command from the same arguments."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from wasmsand import Sandbox, SandboxOptions
from wasmsand.http.messages import RunCommand
from wasmsand.http.served import ServedSandbox
from wasmsand.line.requests import ShellRequest
from wasmsand.line.sandbox import LineSandbox
from wasmsand.rpc.family import Family
from wasmsand.rpc.methods import METHODS
from wasmsand.rpc.params import Params
from wasmsand.rpc.protocol import RpcError
from wasmsand.rpc.session import RpcSession, sandbox_failures
from wasmsand.sdk.backend import CommandRequest
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, CommandBuilder
from wasmsand.sdk.local import LocalBackend

SCRIPT = "env | sort; pwd; cat; exit 3"
OPTIONS = SandboxOptions(env={"COLOUR": "red"}, cwd="/srv/app", timeout_ms=20_000)
BUILDER = CommandBuilder(OPTIONS, lambda: OPTIONS.env)


def by_sdk(stack: ExitStack, options: SandboxOptions, script: str) -> tuple[int, str]:
    backend = LocalBackend(options)
    sandbox = stack.enter_context(Sandbox.from_backend(backend, options))
    result = sandbox.commands.run(script)
    return result.exit_code, result.stdout


@contextmanager
def rpc_session(options: SandboxOptions) -> Iterator[RpcSession]:
    session = Family(lambda _method, _params: None).first
    session.begin(LocalBackend(options), options)
    try:
        yield session
    finally:
        session.end()


def by_json_rpc(stack: ExitStack, options: SandboxOptions, script: str) -> tuple[int, str]:
    session = stack.enter_context(rpc_session(options))
    result: Any = METHODS["commands.run"].handler(session, Params({"command": script}))
    return result["exitCode"], base64.b64decode(result["stdout"]).decode()


def by_http(stack: ExitStack, options: SandboxOptions, script: str) -> tuple[int, str]:
    sandbox = ServedSandbox(options, 60.0)
    stack.callback(sandbox.kill)
    completed = sandbox.backend.run(sandbox.command_request(RunCommand(command=script)))
    return completed.exit_code, completed.stdout.decode()


def by_line(stack: ExitStack, options: SandboxOptions, script: str) -> tuple[int, str]:
    sandbox = LineSandbox(options, None)
    stack.callback(sandbox.close)
    answer: Any = sandbox.answer(ShellRequest("1", script, 20_000))
    return answer["exit_code"], answer["stdout"]


@pytest.mark.parametrize("run", [by_sdk, by_json_rpc, by_http])
def test_a_command_gets_the_variables_and_the_directory_of_its_sandbox(
    run: Callable[[ExitStack, SandboxOptions, str], tuple[int, str]],
) -> None:
    with ExitStack() as stack:
        exit_code, printed = run(stack, OPTIONS, SCRIPT)
    lines = printed.splitlines()
    assert exit_code == 3
    assert {"COLOUR=red", "HOME=/home/user", "LANG=C.UTF-8", "PWD=/srv/app"} <= set(lines)
    assert lines[-1] == "/srv/app"


def test_every_interface_starts_the_same_command() -> None:
    plain = SandboxOptions()
    with ExitStack() as stack:
        found = [run(stack, plain, SCRIPT) for run in (by_sdk, by_json_rpc, by_http, by_line)]
    assert found[0][0] == 3
    assert found == [found[0]] * 4


@pytest.mark.no_userland
def test_a_request_has_the_defaults_of_its_sandbox() -> None:
    request = BUILDER.request("echo hi")
    assert request == CommandRequest(
        ("/bin/bash", "-c", "echo hi"), request.environ, "/srv/app", 20.0, b""
    )
    assert (request.environ["COLOUR"], request.environ["PWD"]) == ("red", "/srv/app")


@pytest.mark.no_userland
def test_a_request_has_what_the_caller_says_instead() -> None:
    request = BUILDER.request(
        ["cat", "-n"],
        stdin="x",
        env={"COLOUR": "blue"},
        cwd="lib",
        timeout_ms=1500,
        inputs=[5],
        outputs=[7],
    )
    assert request == CommandRequest(
        ("cat", "-n"), request.environ, "/srv/app/lib", 1.5, b"x", (5,), (7,)
    )
    assert request.environ["COLOUR"] == "blue"
    assert BUILDER.request("true", environ={"A": "b"}, stdin=None, timeout_ms=None) == (
        CommandRequest(("/bin/bash", "-c", "true"), {"A": "b"}, "/srv/app", None, None)
    )


@pytest.mark.no_userland
@pytest.mark.parametrize(
    ("given", "seconds"), [(SANDBOX_TIMEOUT, 20), (None, 60), (5_000, 5), (90_000, 60)]
)
def test_a_server_bounds_the_time_of_every_command(given: object, seconds: float) -> None:
    bounded = CommandBuilder(OPTIONS, dict, longest_seconds=60)
    assert bounded.request("true", timeout_ms=given).timeout_seconds == seconds


@pytest.mark.no_userland
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"env": {}, "environ": {}}, "give either env or environ, not both"),
        ({"inputs": [2]}, "inputs and outputs must be different numbers above 2"),
        ({"inputs": [4], "outputs": [4]}, "inputs and outputs must be different numbers above 2"),
        ({"outputs": [-1]}, "inputs and outputs must be different numbers above 2"),
        ({"timeout_ms": 0}, "timeout_ms must be a positive number of milliseconds, not 0"),
        ({"cwd": ""}, "cwd must not be empty"),
    ],
)
def test_invalid_commands_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        BUILDER.request("true", **wrong)


def test_json_rpc_refuses_in_the_same_words() -> None:
    params = Params({"command": "true", "env": {}, "environ": {}})
    refused = "Invalid params: give either env or environ, not both"
    with (
        rpc_session(SandboxOptions()) as session,
        pytest.raises(RpcError, match=refused),
        sandbox_failures(),
    ):
        METHODS["commands.start"].handler(session, params)
