"""Builds a complete `CommandRequest` from a caller's arguments, for every interface.

Owns `CommandBuilder`. Rules: the SDK, JSON-RPC, HTTP and the line protocol build their requests
only here. So every interface refuses an argument with the same message, and applies the sandbox's
variables, working directory and timeout in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, Literal

from wasmsand.sdk import arguments
from wasmsand.sdk.backend import STDERR, STDIN, STDOUT, CommandRequest
from wasmsand.sdk.environment import command_environment
from wasmsand.sdk.options import SandboxOptions

_SHELL: Final = ("/bin/bash", "-c")


class SandboxTimeout(Enum):
    """The type of `SANDBOX_TIMEOUT`."""

    INHERITED = "the sandbox's own"

    def __repr__(self) -> str:
        return "SANDBOX_TIMEOUT"


SANDBOX_TIMEOUT: Final = SandboxTimeout.INHERITED
"""A value of `timeout_ms`: use the sandbox's `timeout_ms`."""
SandboxUser = Literal["user", "root"]
"""As whom a command runs."""


class CommandBuilder:
    """Builds the requests of one sandbox."""

    __slots__ = ("_cwd", "_longest_seconds", "_timeout_seconds", "_variables")

    def __init__(
        self,
        options: SandboxOptions,
        variables: Callable[[], Mapping[str, str]],
        longest_seconds: float | None = None,
    ) -> None:
        """`variables` returns the variables that the user has set. `longest_seconds` is the longest
        timeout of a command."""
        self._cwd = options.cwd
        self._timeout_seconds = arguments.timeout_seconds("timeout_ms", options.timeout_ms)
        self._variables = variables
        self._longest_seconds = longest_seconds

    def request(
        self,
        command: object,
        *,
        stdin: object = b"",
        env: object = None,
        environ: object = None,
        cwd: object = None,
        timeout_ms: object = SANDBOX_TIMEOUT,
        user: object = None,
        inputs: Sequence[int] = (),
        outputs: Sequence[int] = (),
    ) -> CommandRequest:
        """`command` is a bash script, or a program and its arguments. If `stdin` is None, the
        input stays open. `env` is added to the sandbox's variables; `environ` replaces all of
        them. If `timeout_ms` is None, there is no timeout. `user` is "user" (or None) or "root".
        `inputs` and `outputs` are additional descriptors.

        Raises `TypeError` and `ValueError` for invalid arguments.
        """
        argv = arguments.command_line(command, _SHELL)
        payload = None if stdin is None else arguments.content("stdin", stdin)
        name = arguments.user_name("user", user)
        directory = self._cwd
        if cwd is not None:
            directory = arguments.guest_path("cwd", cwd, directory)
        if environ is None:
            extra = arguments.variables("env", env)
            variables = command_environment(self._variables(), extra, cwd=directory, user=name)
        elif env is None:
            variables = arguments.variables("environ", environ)
        else:
            raise ValueError("give either env or environ, not both")
        if inputs or outputs:
            _check_descriptors(inputs, outputs)
        return CommandRequest(
            argv,
            variables,
            directory,
            self.seconds(timeout_ms),
            payload,
            tuple(inputs),
            tuple(outputs),
            name,
        )

    def seconds(self, timeout_ms: object = SANDBOX_TIMEOUT) -> float | None:
        """The timeout of a command in seconds; None if it has none."""
        if timeout_ms is SANDBOX_TIMEOUT:
            seconds = self._timeout_seconds
        else:
            seconds = arguments.timeout_seconds("timeout_ms", timeout_ms)
        longest = self._longest_seconds
        if longest is None:
            return seconds
        return longest if seconds is None else min(seconds, longest)


def _check_descriptors(inputs: Sequence[int], outputs: Sequence[int]) -> None:
    every = {STDIN, STDOUT, STDERR, *inputs, *outputs}
    if len(every) != 3 + len(inputs) + len(outputs) or min(every) < 0:
        raise ValueError("inputs and outputs must be different numbers above 2")
