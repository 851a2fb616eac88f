"""`PythonSession`: one interpreter that keeps its state between calls, from `sandbox.python()`.

How it works: the sandbox's `python3` runs `python_driver`, which reads code from one separate
descriptor and writes answers to another (`conversation`). Rules: the program shares its process
with the driver and can write anything to any descriptor. So an answer is checked field by field,
and only numbers, strings, lists and dicts are created from it; anything else is ignored. A hostile
program can at most falsify the result of its own run.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.command_builder import CommandBuilder
from wasmsand.sdk.conversation import Dialect, SessionRequest
from wasmsand.sdk.output import TextSink
from wasmsand.sdk.results import PythonError, PythonResult
from wasmsand.sdk.session import Session

_PROGRAM: Final = "python3"
_REQUESTS, _ANSWERS = 103, 104
_ANSWER_MAX: Final = 8 << 20
_ENDED: Final = "ESRCH: the interpreter has ended; open another one with sandbox.python()"


class PythonSession(Session["_Run"]):
    """A Python session: variables, functions and imports persist.

    Example:
        with sandbox.python() as session:
            session.run("import math; radius = 2")
            session.run("math.pi * radius ** 2").value
    """

    def __init__(
        self,
        attachment: Attachment,
        builder: CommandBuilder,
        *,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
    ) -> None:
        request = builder.request(
            (_PROGRAM, "-c", _driver()),
            env=env,
            cwd=cwd,
            timeout_ms=None,
            inputs=(_REQUESTS,),
            outputs=(_ANSWERS,),
        )
        super().__init__(attachment, request, _DIALECT)

    def run(
        self,
        code: str,
        *,
        timeout_ms: float | None = None,
        on_stdout: TextSink | None = None,
        on_stderr: TextSink | None = None,
    ) -> PythonResult:
        """Run statements in this interpreter. Return their output, and the value of the last
        statement if it is an expression.

        Example:
            result = session.run("print('hello'); 1 + 1")
            result.stdout, result.value, result.error

        `on_stdout` and `on_stderr` get text as it is printed, on the calling thread. If the
        program raises an exception, including `SystemExit`, the result contains it with its
        traceback. After `timeout_ms` (by default the sandbox's) the program gets a
        KeyboardInterrupt, as with Ctrl-C; the interpreter and its state remain. If the program
        ignores the interrupt, the interpreter is ended about six seconds later. Then, or if the
        program ends the interpreter itself, `closed` is true and the next `run` raises
        `CommandError` (ESRCH).

        Standard input is empty. One call runs at a time; other threads wait.
        """
        self._attachment.check_open()
        text = arguments.text("code", code)
        timeout = self._check_run(timeout_ms, on_stdout, on_stderr)
        with self._conversation.turn():
            run = _Run(self._attachment.options.max_output_bytes, on_stdout, on_stderr)
            request = json.dumps({"token": run.token, "code": text}).encode()
            self._conversation.ask(request + b"\n", run, timeout)
            self._attachment.check_open()
            return run.result(self._conversation.exit_code)


class _Run(SessionRequest):
    """The state of one call."""

    repr: str | None = None
    value: Any = None
    error: PythonError | None = None
    has_answer: bool = False

    def result(self, exit_code: int | None) -> PythonResult:
        """What `run` returns."""
        completed = self.completed()
        error = self.error
        if not self.has_answer:
            message = "the interpreter was ended"
            if exit_code is not None:
                message = f"the interpreter ended with exit code {exit_code}"
            error = PythonError("InterpreterEnded", message, "")
        return PythonResult(
            stdout=completed.stdout.decode("utf-8", "replace"),
            stderr=completed.stderr.decode("utf-8", "replace"),
            value=self.value,
            repr=self.repr,
            error=error,
            execution_time_ms=completed.seconds * 1000,
            timed_out=completed.timed_out,
            truncated=completed.truncated,
        )


def _on_answer(line: bytes, run: _Run) -> None:
    """Store the answer, if the line is one."""
    try:
        answer = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return
    if not isinstance(answer, dict) or answer.get("token") != run.token:
        return
    shown, error = answer.get("repr"), answer.get("error")
    if isinstance(shown, str):
        run.repr, run.value = shown, answer.get("value")
    if isinstance(error, dict):
        fields = [error.get(name) for name in ("type", "message", "traceback")]
        run.error = PythonError(*(part if isinstance(part, str) else "" for part in fields))
    run.answered = run.has_answer = True


@cache
def _driver() -> str:
    """The command that the interpreter runs. The driver has its own namespace, because `__main__`
    belongs to the program."""
    source = Path(__file__).with_name("python_driver.py").read_text(encoding="utf-8")
    name = "<session>"
    # The interpreter keeps the memory that its compiler has used. Compiling the driver at once
    # would take 0.4 MB more than compiling one statement after another.
    space = {"__name__": name, "__file__": name, "statements": _statements(source)}
    load = "for statement in statements: exec(compile(statement, __file__, 'exec'))\n"
    call = f"serve({_REQUESTS}, {_ANSWERS})\n"
    return f"exec(compile({load + call!r}, {name!r}, 'exec'), {space!r})"


def _statements(source: str) -> list[str]:
    """The statements of a module, without its docstring and `__future__` imports."""
    lines = source.splitlines(keepends=True)
    return [
        "".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.parse(source).body[1:]
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    ]


_DIALECT: Final[Dialect[_Run]] = Dialect(
    request_fd=_REQUESTS,
    report_fd=_ANSWERS,
    line_max=_ANSWER_MAX,
    on_report=_on_answer,
    ended=_ENDED,
)
