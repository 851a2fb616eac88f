"""`SandboxTools`: a sandbox as a set of tools for a model.

Owns the path from a tool's name and input to a JSON result, and the one place that turns an
exception into an error for the model. Rules: `handle` never raises because of what a model sent or
a failure of the sandbox; a bug in wasmsand passes through.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from wasmsand.sdk.errors import (
    CommandError,
    FileError,
    PackageError,
    SandboxClosedError,
    SandboxError,
)
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.tools import schemas
from wasmsand.tools.actions import ACTIONS, ProgramMissing, has_program
from wasmsand.tools.copies import COPY_ACTIONS, COPY_TOOLS, Machines, with_copies
from wasmsand.tools.definitions import (
    BY_NAME,
    INSTALL_PACKAGES,
    TOOLS,
    ToolDefinition,
    network_sentence,
)
from wasmsand.tools.workbench import CommandObserver, Workbench
from wasmsand.wire.strict_json import kind_of

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

    - `sandbox`: the caller has to kill it
    - `only`: names of the tools to offer (default: all). A tool whose program is not in the image
      is never offered.
    - `output_limit`: maximum number of characters of one output or file that a model gets at once
    - `with_images`: whether the results of `sandbox_python` contain images, as base64 under
      `results[n]["image"]`, for models that can see; otherwise images are saved as files of the
      sandbox, and the results contain their paths
    - `index_installs`: whether to offer `sandbox_install_packages`, which installs Python packages
      from the package index of this machine's pip
    - `max_copies`: how many copies of the sandbox a model may have at a time; 0 offers no tools for
      copies and snapshots. End the copies with `end_copies`.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        only: Collection[str] | None = None,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        with_images: bool = False,
        index_installs: bool = False,
        max_copies: int = 0,
    ) -> None:
        if isinstance(output_limit, bool) or not isinstance(output_limit, int):
            raise TypeError(f"output_limit must be an int, not {kind_of(output_limit)}")
        if output_limit < _SMALLEST_OUTPUT_LIMIT:
            raise ValueError(
                f"output_limit must be at least {_SMALLEST_OUTPUT_LIMIT}, not {output_limit}"
            )
        if only is not None:
            for name in only:
                if name not in BY_NAME:
                    raise UnknownTool(f"only: no tool {name!r}; use one of: {', '.join(BY_NAME)}")
        self._sandbox = sandbox
        offered = tuple(tool for tool in TOOLS if only is None or tool.name in only)
        if index_installs:
            offered = (*offered, INSTALL_PACKAGES)
        if max_copies:
            offered = (*map(with_copies, offered), *COPY_TOOLS)
        self._offered = offered
        self._machines = Machines(sandbox, max_copies)
        self._output_limit = output_limit
        self._with_images = with_images

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools that can be used in this sandbox, described with what its network reaches."""
        network = network_sentence(self._sandbox.network.rules())
        return tuple(
            tool.with_network(network)
            for tool in self._offered
            if tool.program is None or has_program(self._sandbox, tool.program)
        )

    def openai(self, *, api: schemas.OpenAIApi = "chat") -> list[dict[str, Any]]:
        """The tools in the format of OpenAI's APIs: `"chat"` completions or `"responses"`."""
        return schemas.openai(self.definitions, api=api)

    def anthropic(self) -> list[dict[str, Any]]:
        """The tools in the format of Anthropic's Messages API."""
        return schemas.anthropic(self.definitions)

    def handle(self, tool_name: str, input: object) -> dict[str, Any]:
        """Execute a tool call and return the answer for the model as plain JSON.

        The answer to a call that failed is `{"error": {"code": ..., "message": ...}}`: the code is
        the name of an errno, for example `ENOENT`, or `UNKNOWN_TOOL`, `INVALID_INPUT`,
        `PROGRAM_MISSING`, `SANDBOX_CLOSED`, `SANDBOX_ERROR`.
        """
        try:
            return self.call(tool_name, input)
        except TOOL_ERRORS as error:
            return {"error": {"code": error_code(error), "message": str(error)}}

    def call(
        self, tool_name: str, input: object, *, observer: CommandObserver | None = None
    ) -> dict[str, Any]:
        """Like `handle`, but raise an exception if the call fails (see `TOOL_ERRORS`). `observer`
        can watch a command while it runs, and end it."""
        tool = next((tool for tool in self._offered if tool.name == tool_name), None)
        if tool is None:
            names = ", ".join(tool.name for tool in self._offered)
            raise UnknownTool(f"unknown tool {tool_name!r:.80}; use one of: {names}")
        given = tool.checked(input)
        if tool.name in COPY_ACTIONS:
            return COPY_ACTIONS[tool.name](self._machines, given)
        machine = self._machines.find(given.pop("copy", None))
        bench = Workbench(
            machine.sandbox, machine.outputs, self._output_limit, observer, self._with_images
        )
        return ACTIONS[tool.name](bench, given)

    def end_copies(self) -> None:
        """Kill the copies that a model has made. The sandbox itself remains."""
        self._machines.end_copies()


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
    if isinstance(error, SandboxError):
        return "SANDBOX_ERROR"
    if isinstance(error, UnknownTool):
        return "UNKNOWN_TOOL"
    return "INVALID_INPUT"
