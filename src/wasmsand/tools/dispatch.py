"""`SandboxTools`: a sandbox as a set of tools for a model.

Owns the path from a tool's name and input to a JSON result, and the one place that turns an
exception into an error for the model. Rules: `handle` never raises because of what a model sent or
a failure of the sandbox; a bug in wasmsand passes through.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from wasmsand.sdk.errors import (
    CommandError,
    FileError,
    PackageError,
    SandboxClosedError,
    SandboxError,
)
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.tools import answers, schemas
from wasmsand.tools.actions import ACTIONS, ProgramMissing
from wasmsand.tools.copies import COPY_ACTIONS, COPY_TOOLS, Machines, with_copies
from wasmsand.tools.definitions import INSTALL_PACKAGES, TOOLS, ToolDefinition
from wasmsand.tools.live_sessions import SessionBusy
from wasmsand.tools.native import NATIVE_ACTIONS, native_tools, others, typed_entries
from wasmsand.tools.overlay_tools import APPLY, DIFF, OVERLAY_ACTIONS
from wasmsand.tools.surroundings import Observation
from wasmsand.tools.workbench import CommandObserver, Workbench
from wasmsand.wire.strict_json import kind_of

if TYPE_CHECKING:
    from wasmsand.sdk.async_sandbox import AsyncSandbox

DEFAULT_OUTPUT_LIMIT = 30_000
_SMALLEST_OUTPUT_LIMIT = 100


class UnknownTool(ValueError):
    """There is no tool of this name, or it is not in this set of tools."""


TOOL_ERRORS = (ValueError, SandboxError)
"""What a call of a tool may raise: an error for invalid input (`InvalidToolInput`, `UnknownTool`,
`ValueError` for a path with a NUL character), and errors of the sandbox."""


class SandboxTools:
    """One sandbox's tools.

        tools = SandboxTools(sandbox)
        model_api.create(..., tools=tools.anthropic())
        tools.handle("sandbox_run", {"command": "ls | wc -l"})

    - `sandbox`: a `Sandbox`, or an `AsyncSandbox` that was entered; the caller has to kill it
    - `only`: names of the tools to offer (default: all). A tool whose program is not in the image
      is never offered.
    - `output_limit`: maximum number of characters of one output or file that a model gets at once
    - `with_images`: whether the answers of `handle` contain images, as base64 under `image` and
      `results[n]["image"]`, for models that can see; otherwise images are saved as files of the
      sandbox, and the answers contain their paths. `answer_anthropic` and the others decide by
      what their API takes.
    - `index_installs`: whether to offer `sandbox_install_packages`, which installs Python packages
      from the package index of this machine's pip
    - `max_copies`: how many copies of the sandbox a model may have at a time; 0 offers no tools for
      copies and snapshots
    - `apply_changes`: whether to offer `sandbox_apply`, which writes the changes of a directory
      that is mounted as an overlay to this machine
    - `continue_sessions`: whether to go on with the first shell and the first interpreter that the
      sandbox has already, as after `Sandbox.open` or `Sandbox.load`

    `close` ends what the tools have started: shell, interpreter, commands, copies. So does killing
    the sandbox, except for copies.
    """

    def __init__(
        self,
        sandbox: Sandbox | AsyncSandbox,
        *,
        only: Collection[str] | None = None,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        with_images: bool = False,
        index_installs: bool = False,
        max_copies: int = 0,
        apply_changes: bool = False,
        continue_sessions: bool = False,
    ) -> None:
        if isinstance(output_limit, bool) or not isinstance(output_limit, int):
            raise TypeError(f"output_limit must be an int, not {kind_of(output_limit)}")
        if output_limit < _SMALLEST_OUTPUT_LIMIT:
            raise ValueError(
                f"output_limit must be at least {_SMALLEST_OUTPUT_LIMIT}, not {output_limit}"
            )
        if only is not None:
            for name in only:
                if name not in _CHOICES:
                    raise UnknownTool(f"only: no tool {name!r}; use one of: {', '.join(_CHOICES)}")
        used = _blocking(sandbox)
        offered = tuple(tool for name, tool in _CHOICES.items() if only is None or name in only)
        if index_installs:
            offered = (*offered, INSTALL_PACKAGES)
        if apply_changes:
            offered = (*offered, APPLY)
        if max_copies:
            offered = (*map(with_copies, offered), *COPY_TOOLS)
        self._offered = tuple(tool.located(used.options.cwd) for tool in offered)
        self._observation = Observation(used)
        self._machines = Machines(used, max_copies)
        if continue_sessions:
            self._machines.main.live.adopt_existing()
        self._output_limit = output_limit
        self._with_images = with_images

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools that can be used in this sandbox, described with what it has and reaches."""
        where = self._observation.take()
        return tuple(tool.described(where) for tool in self._offered if tool.is_usable(where))

    def openai(self, *, api: schemas.OpenAIApi = "chat") -> list[dict[str, Any]]:
        """The tools in the format of OpenAI's APIs: `"chat"` completions or `"responses"`."""
        return schemas.openai(self.definitions, api=api)

    def anthropic(self, *, native: bool = False) -> list[dict[str, Any]]:
        """The tools in the format of Anthropic's Messages API. With `native`, its own bash and text
        editor tools take the place of `sandbox_run` and of the tools for files."""
        offered = self.definitions
        if not native:
            return schemas.anthropic(offered)
        known = native_tools(offered)
        entries = typed_entries(known, self._output_limit)
        return [*entries, *schemas.anthropic(others(offered, known))]

    def gemini(self) -> list[dict[str, Any]]:
        """The tools in the format of Google's Gemini API."""
        return schemas.gemini(self.definitions)

    def answer_anthropic(self, block: object) -> dict[str, Any]:
        """Execute a `tool_use` block of Anthropic's API, also one of its own tools. Returns the
        `tool_result` block, with images."""
        return answers.anthropic_answer(self._answer, block)

    def answer_openai(self, call: object) -> dict[str, Any]:
        """Execute a tool call of OpenAI's chat completions, or a `function_call` of its responses.
        Returns the message, or the `function_call_output`, which has images."""
        return answers.openai_answer(self._answer, call)

    def answer_gemini(self, call: object) -> dict[str, Any]:
        """Execute a function call of Gemini. Returns the part with the `functionResponse`."""
        return answers.gemini_answer(self._answer, call)

    def handle(self, tool_name: str, input: object) -> dict[str, Any]:
        """Execute a tool call and return the answer for the model as plain JSON.

        The answer to a call that failed is `{"error": {"code": ..., "message": ...}}`: the code is
        the name of an errno, for example `ENOENT`, or `UNKNOWN_TOOL`, `INVALID_INPUT`,
        `PROGRAM_MISSING`, `BUSY`, `SANDBOX_CLOSED`, `SANDBOX_ERROR`.
        """
        return self._answer(tool_name, input, self._with_images)

    async def handle_async(self, tool_name: str, input: object) -> dict[str, Any]:
        """`handle` on a thread, so that the event loop goes on meanwhile. If the task is cancelled,
        the call is interrupted."""
        from wasmsand.sdk import async_calls  # which imports asyncio

        return await async_calls.call(self.handle, tool_name, input)

    def _answer(self, tool_name: str, input: object, with_images: bool) -> dict[str, Any]:
        try:
            return self._call(tool_name, input, with_images, None)
        except TOOL_ERRORS as error:
            return {"error": {"code": error_code(error), "message": str(error)}}

    def call(
        self, tool_name: str, input: object, *, observer: CommandObserver | None = None
    ) -> dict[str, Any]:
        """Like `handle`, but raise an exception if the call fails (see `TOOL_ERRORS`). `observer`
        can watch a command while it runs, and end it."""
        return self._call(tool_name, input, self._with_images, observer)

    def _call(
        self, tool_name: str, input: object, with_images: bool, observer: CommandObserver | None
    ) -> dict[str, Any]:
        known = (*self._offered, *native_tools(self._offered))
        tool = next((tool for tool in known if tool.name == tool_name), None)
        if tool is None:
            names = ", ".join(tool.name for tool in self._offered)
            raise UnknownTool(f"unknown tool {tool_name!r:.80}; use one of: {names}")
        given = tool.checked(input)
        if tool.name in COPY_ACTIONS:
            return COPY_ACTIONS[tool.name](self._machines, given)
        machine = self._machines.find(given.pop("copy", None))
        bench = Workbench(
            machine.sandbox,
            machine.outputs,
            machine.live,
            machine.background,
            self._output_limit,
            observer,
            with_images,
        )
        return _ACTIONS[tool.name](bench, given)

    def end_copies(self) -> None:
        """Kill the copies that a model has made. The sandbox itself remains."""
        self._machines.end_copies()

    def close(self) -> None:
        """End what the tools have started: the shell, the interpreter, commands of `sandbox_start`,
        copies. The sandbox itself remains, and the tools can be used again."""
        self._machines.close()


_CHOICES = {tool.name: tool for tool in (*TOOLS, DIFF)}
"""The tools that are offered by default, by name."""
_ACTIONS = {**ACTIONS, **OVERLAY_ACTIONS, **NATIVE_ACTIONS}


def _blocking(sandbox: object) -> Sandbox:
    """The sandbox, of an asynchronous one the one below it."""
    # Whoever has an asynchronous sandbox has imported its module; others need not.
    module = sys.modules.get("wasmsand.sdk.async_sandbox")
    if module is not None and isinstance(sandbox, module.AsyncSandbox):
        sandbox = sandbox._blocking  # raises RuntimeError if it was not entered
    if not isinstance(sandbox, Sandbox):
        kind = type(sandbox).__name__
        raise TypeError(f"sandbox must be a Sandbox or an AsyncSandbox, not {kind}")
    return sandbox


def error_code(error: Exception) -> str:
    """A short name of the error, for programs."""
    if isinstance(error, FileError | CommandError):
        return error.errno_name
    if isinstance(error, PackageError):
        return error.code.upper()
    if isinstance(error, SandboxClosedError):
        return "SANDBOX_CLOSED"
    if isinstance(error, ProgramMissing):
        return "PROGRAM_MISSING"
    if isinstance(error, SessionBusy):
        return "BUSY"
    if isinstance(error, SandboxError):
        return "SANDBOX_ERROR"
    if isinstance(error, UnknownTool):
        return "UNKNOWN_TOOL"
    return "INVALID_INPUT"
