"""Runs the code of a smolagents `CodeAgent` in a sandbox (package `smolagents`).

agent = CodeAgent(tools, model, executor=SandboxExecutor(sandbox),
                  additional_authorized_imports=["*"])

How it works: the code runs in a Python session of the sandbox. The agent's tools run here, on the
host: the code gets functions of the same names, which call them (`tool_calls.py`). Rules: arguments
from the sandbox are plain values, and untrusted. The sandbox, not a list of names, decides what can
be imported. A session that has ended is replaced, with the tools and variables that were sent.
"""

from __future__ import annotations

import inspect
import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from smolagents.local_python_executor import CodeOutput, PythonExecutor

from wasmsand.sdk.errors import CommandError, FileError
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.results import PythonResult
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.tools.adapters import tool_calls

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
CALLS_MAX: Final = 1_000
"""Calls of tools in one run of code."""
_DIRECTORY: Final = "/tmp/.wasmsand-tool-calls"
_MODULE: Final = "_wasmsand_tool_calls"


class SandboxExecutionError(RuntimeError):
    """The code of the agent has failed. The message is for the model."""


class SandboxExecutor(PythonExecutor):  # type: ignore[misc]  # the package has no types
    """Executes the code of an agent in `sandbox`, which the caller has to kill.

    - `timeout_ms`: maximum time of one piece of code, without the time of its tools; by default
      that of the sandbox
    - `max_print_outputs_length`: how many characters of the printed output the model gets
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        timeout_ms: float | None = None,
        max_print_outputs_length: int = 50_000,
    ) -> None:
        if not isinstance(sandbox, Sandbox):
            raise TypeError(f"sandbox must be a Sandbox, not {type(sandbox).__name__}")
        self.state: dict[str, Any] = {"_print_outputs": ""}
        """`_print_outputs`: what the last code has printed; the agent shows it after a failure."""
        self._sandbox = sandbox
        self._timeout_ms = timeout_ms
        self._most_output = max_print_outputs_length
        self._tools: dict[str, Callable[..., Any]] = {}
        self._variables: dict[str, Any] = {}
        self._session: PythonSession | None = None
        self._token = f"{_MODULE}-{secrets.token_hex(16)}:"
        self._answer: list[Any] = []
        """The final answer, once the code has given it."""
        self._calls = 0
        self._files = 0

    def send_tools(self, tools: Mapping[str, Any]) -> None:
        """Make the agent's tools functions of the code."""
        for name in tools:
            if not name.isidentifier():
                raise ValueError(f"the name of a tool must be an identifier, not {name!r}")
        self._tools.update(tools)
        if self._session is not None:
            self._define(self._session, tools)

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """Make values variables of the code. Raises `TypeError` for what cannot be carried."""
        for name, value in variables.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise ValueError(f"the name of a variable must be an identifier, not {name!r}")
            try:
                tool_calls.encode(value)
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
        self._variables.update(variables)
        if self._session is not None:
            self._assign(self._session, variables)

    def __call__(self, code_action: str) -> CodeOutput:
        """Run code. Raises `SandboxExecutionError`."""
        self.state["_print_outputs"] = ""
        self._answer.clear()
        self._calls = 0
        was_lost = self._session is not None and self._session.closed
        try:
            result = self._run(self._opened(), code_action)
        except CommandError as error:
            if error.errno_name != "ESRCH":
                raise
            was_lost, self._session = True, None
            result = self._run(self._opened(), code_action)
        logs = _shortened(result.stdout + result.stderr, self._most_output)
        if was_lost:
            logs = f"(the interpreter had ended; earlier variables are lost)\n{logs}"
        self.state["_print_outputs"] = logs
        if self._session is not None and self._session.closed:
            self._session = None  # `_failure` says so
        if self._answer:
            return CodeOutput(output=self._answer[0], logs=logs, is_final_answer=True)
        if result.error is not None or result.truncated:
            raise SandboxExecutionError(self._failure(result))
        output = result.value if result.value is not None else result.repr
        return CodeOutput(output=output, logs=logs, is_final_answer=False)

    def cleanup(self) -> None:
        """End the interpreter; the sandbox remains."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _opened(self) -> PythonSession:
        if self._session is not None and not self._session.closed:
            return self._session
        session = self._sandbox.python()
        self._set_up(
            session,
            f"import sys, types\n"
            f"sys.modules[{_MODULE!r}] = module = types.ModuleType({_MODULE!r})\n"
            f"source = {inspect.getsource(tool_calls)!r}\n"
            f"exec(compile(source, {_MODULE!r}, 'exec'), module.__dict__)\n"
            f"module.caller = module.ToolCaller({self._token!r}, {_DIRECTORY!r})\n"
            "del module, source, sys, types",
        )
        self._define(session, self._tools)
        self._assign(session, self._variables)
        self._session = session
        return session

    def _define(self, session: PythonSession, tools: Mapping[str, Any]) -> None:
        lines = [f"import {_MODULE}"]
        for name, tool in tools.items():
            description = str(getattr(tool, "description", ""))
            made = f"{_MODULE}.caller.function({name!r}, {description!r})"
            if name == "final_answer":
                made = f"{_MODULE}.caller.final_answer"
            lines.append(f"{name} = {made}")
        self._set_up(session, "\n".join([*lines, f"del {_MODULE}"]))

    def _assign(self, session: PythonSession, variables: Mapping[str, Any]) -> None:
        if variables:
            data = json.dumps(tool_calls.encode(dict(variables)))
            self._set_up(
                session,
                f"import {_MODULE}, json\nglobals().update({_MODULE}.decode(json.loads({data!r}), "
                f"make_objects=True))\ndel {_MODULE}, json",
            )

    def _set_up(self, session: PythonSession, code: str) -> None:
        result = session.run(code)
        if result.error is not None:
            raise SandboxExecutionError(f"the interpreter was not set up: {result.error.message}")

    def _run(self, session: PythonSession, code: str) -> PythonResult:
        return session.run(code, timeout_ms=self._timeout_ms, on_input=self._on_input)

    def _failure(self, result: PythonResult) -> str:
        error = result.error
        if result.timed_out:
            return "the code took too long and was interrupted; variables are kept"
        if result.truncated:
            return "the code printed too much and was interrupted"
        if error is None or error.type == "InterpreterEnded":
            return "the interpreter has ended; variables are lost"
        if error.type.endswith(tool_calls.FinalAnswer.__name__):
            return "final_answer was not called as a function of the agent"
        return _shortened(error.traceback, self._most_output)

    # Calls of tools.

    def _on_input(self, prompt: str) -> str | None:
        """Answer a call of a tool; a question of the code's own `input()` has no answer."""
        if not prompt.startswith(self._token):
            return None
        try:
            answer = json.dumps({"value": self._called(prompt.removeprefix(self._token))})
        except Exception as error:  # whatever a tool raises is for the code
            text = _shortened(f"{type(error).__name__}: {error}", tool_calls.INLINE_MAX)
            answer = json.dumps({"error": text})
        if len(answer) <= tool_calls.INLINE_MAX:
            return answer
        self._files += 1
        path = f"{_DIRECTORY}/answer-{self._files}"
        try:
            self._sandbox.files.write(path, answer)
        except FileError as error:
            return json.dumps({"error": f"the answer of the tool is too large: {error}"})
        return json.dumps({"path": path})

    def _called(self, message: str) -> Any:
        """Call the tool that the message names; returns its result, encoded."""
        self._calls += 1
        if self._calls > CALLS_MAX:
            raise RuntimeError(f"the code has called tools more than {CALLS_MAX} times")
        call = json.loads(message)
        if isinstance(call, str):
            call = json.loads(self._content(call))
        if not isinstance(call, list) or len(call) != 3 or not isinstance(call[0], str):
            raise ValueError("not a call")
        name, sent_args, sent_named = call
        if name not in self._tools:
            raise NameError(f"there is no tool {name!r:.80}")
        if not isinstance(sent_args, list) or not isinstance(sent_named, dict):
            raise ValueError("not a call")
        args = [tool_calls.decode(value) for value in sent_args]
        named = {key: tool_calls.decode(value) for key, value in sent_named.items()}
        result = self._tools[name](*args, **named)
        if name == "final_answer":
            self._answer[:] = [result]
            return None
        return tool_calls.shown(result)

    def _content(self, path: str) -> bytes:
        """A message that is in a file of the sandbox."""
        if not path.startswith(f"{_DIRECTORY}/"):
            raise ValueError("not a call")
        chunks = self._sandbox.files.read_stream(path, chunk_size=MESSAGE_BYTES_MAX + 1)
        content = next(iter(chunks), b"")
        if len(content) > MESSAGE_BYTES_MAX:
            raise ValueError(f"the arguments have more than {MESSAGE_BYTES_MAX} bytes")
        self._sandbox.files.rm(path)
        return content


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
