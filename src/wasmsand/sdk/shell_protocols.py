"""How a `Shell` talks to its bash: two protocols, one for each kind of bash.

Owns `ShellProtocol`, `SESSION_MODE`, `LINES` and `ShellCommand`. Rules: a bash reports the end of a
script with its token and its exit status on `STATUS_FD`; reports are untrusted.

`SESSION_MODE` is for our own bash, which reads requests from a descriptor and runs each script as
`source` would (`userland/recipes/bash/session.c`). A script has bash's own standard files, and
nothing is redirected for it.

`LINES` is for any bash, such as that of an emulated machine. Bash reads lines from standard input:
for each script one that runs it with standard files of its own, and one that prints the exit
status. A long script is passed in a file, so that the line is short: a pipe accepts a short line
completely or not at all, and bash never takes a part of a script for a separate line.

In both, bash is interactive (without a terminal, so without prompts, history and job control)
because SIGINT then ends the script and not the shell: the shell stays usable after a timeout. Bash
without job control starts background jobs so that they ignore SIGINT.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wasmsand.sdk.backend import STDIN
from wasmsand.sdk.conversation import Dialect
from wasmsand.sdk.output import command_result
from wasmsand.sdk.results import CommandResult
from wasmsand.sdk.session_request import SessionRequest

REQUESTS_FD, STATUS_FD = 100, 103
"""Descriptors of the shell: requests in session mode, and the exit status of each."""
_OUT, _ERR, _SCRIPT = 101, 102, 104
"""With lines: the command's outputs, and its script."""
_BASH: Final = ("/bin/bash", "--norc", "--noprofile", "--noediting")
_PREPARE: Final = "set +o history +o histexpand; unset HISTFILE MAILCHECK; export -n PS1 PS2"
_STATUS_LINE: Final = re.compile(rb"([0-9a-f]{16}) (\d{1,3})")
_STATUS_LINE_MAX: Final = 20
_ENDED: Final = "ESRCH: the shell has ended; open another one with sandbox.shell()"


class ShellCommand(SessionRequest):
    """The state of one command of a shell."""

    exit_code: int | None = None

    def result(self) -> CommandResult:
        """What `run` returns."""
        return command_result(self.completed(self.exit_code or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellProtocol:
    """How to start a bash, and to let it run scripts."""

    argv: tuple[str, ...]
    inputs: tuple[int, ...]
    """Descriptors, beside standard input, to which the host writes."""
    stdin: bytes | None
    """Its standard input; None: the host writes requests to it."""
    first_request: Callable[[str], bytes]
    """Makes the request, of a token, that prepares bash."""
    inline_max: int | None
    """A script of more bytes is passed in a file."""
    request: Callable[[str, str, str, str], bytes]
    """Makes a request of a token, a script, the path of its standard input, and the path of the
    file that has the script. A path may be empty."""
    request_pattern: re.Pattern[bytes]
    """Finds the token of a request in what is written to bash. A server finds out with it whether a
    shell that a client drives has a request."""
    dialect: Dialect[ShellCommand]


def _on_status(line: bytes, command: ShellCommand) -> None:
    match = _STATUS_LINE.fullmatch(line)
    if match is not None and match[1] == command.token.encode():
        command.exit_code = int(match[2])
        command.answered = True


def _session_request(token: str, script: str, stdin: str = "", file: str = "") -> bytes:
    content = script.encode("utf-8", "surrogateescape") + b"\n"
    path = stdin.encode()
    return b"%s %08x %05x\n%s%s" % (token.encode(), len(content), len(path), path, content)


SESSION_MODE: Final = ShellProtocol(
    argv=(*_BASH, "--session", f"{REQUESTS_FD},{STATUS_FD}", "-i"),
    inputs=(REQUESTS_FD,),
    stdin=b"",
    first_request=lambda token: _session_request(token, _PREPARE),
    inline_max=None,
    request=_session_request,
    request_pattern=re.compile(rb"\A([0-9a-f]{16}) [0-9a-f]{8} [0-9a-f]{5}\n"),
    dialect=Dialect(
        request_fd=REQUESTS_FD,
        report_fd=STATUS_FD,
        line_max=_STATUS_LINE_MAX,
        on_report=_on_status,
        ended=_ENDED,
    ),
)


def _tell_status(token: str) -> str:
    return f"\\builtin echo {token} $? >&{STATUS_FD}\n"


def _lines(token: str, script: str, stdin: str, file: str) -> bytes:
    """The lines that run a script. `source`, not `eval`: it is silent about background jobs."""
    quoted = script.replace("'", "'\\''")
    source = f"<{file}" if file else f"<<<'{quoted}'"
    line = (
        f"{{ \\builtin . /dev/fd/{_SCRIPT}; }} 0<{stdin or '/dev/null'} "
        f"1>&{_OUT} 2>&{_ERR} {_SCRIPT}{source}"
    )
    return f"{line}\n{_tell_status(token)}".encode("utf-8", "surrogateescape")


def _first_lines(token: str) -> bytes:
    line = f"{_PREPARE}; exec {_OUT}>&1 {_ERR}>&2 >/dev/null 2>&1"
    return f"{line}\n{_tell_status(token)}".encode()


LINES: Final = ShellProtocol(
    argv=(*_BASH, "-i"),
    inputs=(),
    stdin=None,
    first_request=_first_lines,
    inline_max=2048,
    request=_lines,
    request_pattern=re.compile(rb"\\builtin echo ([0-9a-f]{16}) \$\? >&%d\n\Z" % STATUS_FD),
    dialect=Dialect(
        request_fd=STDIN,
        report_fd=STATUS_FD,
        line_max=_STATUS_LINE_MAX,
        on_report=_on_status,
        # Bash may drop lines that were sent before the signal.
        reminder=lambda command: _tell_status(command.token).encode(),
        ended=_ENDED,
    ),
)
