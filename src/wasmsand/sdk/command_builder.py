"""From what a caller asks for to a complete `CommandRequest`: one builder for every interface.

Owns `CommandBuilder`. Rules: the SDK, JSON-RPC, HTTP and the line protocol make their requests
here and nowhere else, so a command is checked in the same words, and gets the sandbox's variables,
working directory and time limit in the same way, wherever it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from wasmsand.sdk import arguments
from wasmsand.sdk.backend import STDERR, STDIN, STDOUT, CommandRequest
from wasmsand.sdk.environment import command_environment
from wasmsand.sdk.options import SandboxOptions

_SHELL: Final = ("/bin/bash", "-c")


class _Inherited(Enum):
    TIMEOUT = "the sandbox's own"


SANDBOX_TIMEOUT: Final = _Inherited.TIMEOUT
"""For `timeout_ms`: the time limit that the sandbox has for its commands."""


class CommandBuilder:
    """Makes the requests of one sandbox."""

    __slots__ = ("_cwd", "_longest_seconds", "_timeout_seconds", "_variables")

    def __init__(
        self,
        options: SandboxOptions,
        variables: Callable[[], Mapping[str, str]],
        longest_seconds: float | None = None,
    ) -> None:
        """`variables` gives those that the sandbox's user has set. No command may take longer
        than `longest_seconds`."""
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
        inputs: Sequence[int] = (),
        outputs: Sequence[int] = (),
    ) -> CommandRequest:
        """`command` is a script for bash, or a program and its arguments. `stdin` None leaves
        the input open; `env` is added to the sandbox's variables, `environ` replaces all;
        `timeout_ms` None is no limit; `inputs` and `outputs` are further descriptors.

        Raises `TypeError` and `ValueError` for what cannot be.
        """
        argv = arguments.command_line(command, _SHELL)
        payload = None if stdin is None else arguments.content("stdin", stdin)
        directory = self._cwd
        if cwd is not None:
            directory = arguments.guest_path("cwd", cwd, directory)
        if environ is None:
            extra = arguments.variables("env", env)
            variables = command_environment(self._variables(), extra, cwd=directory)
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
            self._seconds(timeout_ms),
            payload,
            tuple(inputs),
            tuple(outputs),
        )

    def _seconds(self, timeout_ms: object) -> float | None:
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
