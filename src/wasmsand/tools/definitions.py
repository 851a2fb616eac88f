"""All tools for models in one place: name, description, parameters.

Rules: the schemas for model APIs, the MCP server and the framework adapters all come from this
list; `actions.py` implements each tool under the same name. Descriptions are written for a model:
what the tool is for, what it returns, what to do if the output is too long. A `{field}` in a
description is replaced by what is true of the sandbox (`surroundings.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wasmsand.tools.parameters import Parameter, checked_input, object_schema
from wasmsand.tools.surroundings import Surroundings

MAX_TIMEOUT_MS = 600_000
MAX_WAIT_MS = 60_000
MAX_SOURCE_CHARACTERS = 1024 * 1024
"""Longest script or program."""
MAX_LISTED_FILES = 1_000
MAX_FILE_BYTES = 16 * 1024 * 1024
"""Largest file that a tool reads or edits as a whole."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool."""

    name: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    read_only: bool = False
    """Whether the tool never changes the sandbox."""
    program: str | None = None
    """A program of the image that the tool needs."""
    needs_overlay: bool = False
    """Whether the tool is offered only if a directory of the host is mounted as an overlay."""
    changes_host: bool = False
    """Whether the tool changes files of the host."""

    def is_usable(self, where: Surroundings) -> bool:
        """Whether the sandbox has what the tool needs."""
        has_program = self.program is None or self.program in where.programs
        return has_program and (bool(where.overlays) or not self.needs_overlay)

    def described(self, where: Surroundings) -> ToolDefinition:
        """The same tool, described for this sandbox."""
        return replace(self, description=_filled(self.description, where.fields()))

    def located(self, cwd: str) -> ToolDefinition:
        """The same tool, with parameters described for a sandbox with this working directory."""
        fields = {"cwd": cwd}
        parameters = tuple(
            replace(parameter, description=_filled(parameter.description, fields))
            for parameter in self.parameters
        )
        return replace(self, parameters=parameters)

    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the input, as a new object."""
        return object_schema(self.parameters)

    def checked(self, sent: object) -> dict[str, Any]:
        """Check `sent` and return a value for every parameter. Raises `InvalidToolInput`."""
        return checked_input(self.parameters, sent)


def _filled(text: str, fields: Mapping[str, str]) -> str:
    """`text` with each `{field}` replaced; what a value contains is not looked at again."""
    return re.sub(r"\{(\w+)\}", lambda found: fields[found[1]], text)


_PATH = Parameter(
    "path",
    "string",
    "Path of the file; a relative path starts at {cwd}.",
    required=True,
    may_be_empty=False,
)
_COMMAND = Parameter(
    "command",
    "string",
    "A script for bash.",
    required=True,
    may_be_empty=False,
    longest=MAX_SOURCE_CHARACTERS,
)
_STDIN = Parameter("stdin", "string", "Text for standard input; empty by default.")
_TIMEOUT = Parameter(
    "timeout_ms",
    "integer",
    "Interrupt the call after this many milliseconds (exit code 124).",
    minimum=1,
    maximum=MAX_TIMEOUT_MS,
)
_ENCODING = Parameter(
    "encoding",
    "string",
    "Encoding of content: utf-8 for text, base64 for any bytes.",
    default="utf-8",
    choices=("utf-8", "base64"),
)

RUN = ToolDefinition(
    name="sandbox_run",
    title="Run a command",
    description=(
        "Run a bash command in a private Linux sandbox with {programs} and more. All calls use one "
        "shell, which starts in {cwd}: files, the current directory, variables and functions "
        "persist. {network} "
        "{absent}{mounts} {time} For servers and longer commands, use sandbox_start. Returns "
        "exit_code, stdout, stderr and execution_time_ms; a command that fails is a normal result. "
        "Standard input is empty unless stdin is given, and there is no terminal. Long output is "
        "cut in the middle; the text at the cut names the file with the whole output, and "
        "sandbox_read_file reads parts of it."
    ),
    parameters=(
        _COMMAND,
        _STDIN,
        _TIMEOUT,
        Parameter(
            "restart",
            "boolean",
            "Start a new shell first, in {cwd}. Files stay; variables, functions and background "
            "jobs of the old shell are lost.",
            default=False,
        ),
    ),
)

PYTHON = ToolDefinition(
    name="sandbox_python",
    title="Run Python",
    description=(
        "Run {python} code in the sandbox, as a cell of a notebook: variables, functions and "
        "imports persist from call to call. {packages} The files are those of the other tools. "
        "{network} {time} Results are the value of the last expression, what display() gets, and "
        "figures of matplotlib, without plt.show(); !command and top-level await work; input() has "
        "no answer. Returns exit_code (0, or 1 after an exception), stdout, stderr with the "
        "traceback, execution_time_ms, and results, each with its text and image."
    ),
    parameters=(
        replace(_COMMAND, name="code", description="Python source code."),
        _TIMEOUT,
        Parameter(
            "reset",
            "boolean",
            "Start a new interpreter first: all variables are lost, files stay.",
            default=False,
        ),
    ),
    program="python3",
)

READ_FILE = ToolDefinition(
    name="sandbox_read_file",
    title="Read a file",
    description=(
        "Read a file of the sandbox. Returns content and size, and for a text file total_lines. "
        "A PNG or JPEG is shown as an image if you can see images. Other content that is not UTF-8 "
        "is returned as base64, and encoding says so. If a file is too long, only its beginning is "
        "returned, with truncated: true; use offset and limit to read the rest."
    ),
    parameters=(
        _PATH,
        Parameter("offset", "integer", "First line to read, counted from 1.", minimum=1),
        Parameter("limit", "integer", "Number of lines to read.", minimum=1),
    ),
    read_only=True,
)

WRITE_FILE = ToolDefinition(
    name="sandbox_write_file",
    title="Write a file",
    description=(
        "Create a file of the sandbox or replace its whole content; missing directories are "
        "created. To change a part of a file, use sandbox_edit_file. Returns path and size."
    ),
    parameters=(
        _PATH,
        Parameter("content", "string", "The new content of the file.", required=True),
        _ENCODING,
    ),
)

LIST_FILES = ToolDefinition(
    name="sandbox_list_files",
    title="List a directory",
    description=(
        "List a directory of the sandbox, sorted by name. Returns name, type, size in bytes and "
        "mode of each entry; with recursive also the entries below it, with their paths. Returns "
        f"at most {MAX_LISTED_FILES} entries; truncated says whether there are more."
    ),
    parameters=(
        Parameter(
            "path",
            "string",
            "Path of the directory; a relative path starts at {cwd}.",
            default=".",
            may_be_empty=False,
        ),
        Parameter(
            "recursive", "boolean", "Also list the entries of all directories below.", default=False
        ),
        Parameter(
            "glob",
            "string",
            "List only names that match this pattern, for example *.py. A pattern with a slash is "
            "compared with paths below the directory; ** matches any number of directories.",
            may_be_empty=False,
        ),
    ),
    read_only=True,
)

EDIT_FILE = ToolDefinition(
    name="sandbox_edit_file",
    title="Edit a file",
    description=(
        "Replace text in a file of the sandbox. old_string must occur in the file exactly as "
        "given, including white space, and only once, unless replace_all is true. Returns path "
        "and the number of replacements. If the edit fails, the file is unchanged."
    ),
    parameters=(
        _PATH,
        Parameter(
            "old_string",
            "string",
            "The text to replace, with enough of the surrounding text to be unique.",
            required=True,
            may_be_empty=False,
        ),
        Parameter("new_string", "string", "The text to insert instead.", required=True),
        Parameter("replace_all", "boolean", "Replace every occurrence.", default=False),
    ),
)

INSTALL_PACKAGES = ToolDefinition(
    name="sandbox_install_packages",
    title="Install Python packages",
    description=(
        "Install Python packages, and what they need, for python3 in the sandbox. Use it for "
        "packages that `pip install` in the sandbox does not find. Only packages without native "
        "code can be installed, and those of the image, such as numpy. Returns installed: name "
        "and version of each new package."
    ),
    parameters=(
        Parameter(
            "packages",
            "string",
            "Names with optional versions, separated by spaces, for example: humanize>=4 emoji",
            required=True,
            may_be_empty=False,
        ),
    ),
    program="python3",
)
"""Offered only if the host allows installs from its package index."""

_ID = Parameter(
    "id",
    "string",
    "Id of the command, from sandbox_start. Without it, all commands are listed.",
    may_be_empty=False,
)

START = ToolDefinition(
    name="sandbox_start",
    title="Start a long command",
    description=(
        "Start a bash command that runs beside the other tools, such as a server or a long job, "
        "and return at once. It has its own shell: the directory and variables of sandbox_run do "
        "not apply. At most 8 run at a time, until they end or the sandbox does. Returns id, for "
        "sandbox_process, and pid."
    ),
    parameters=(
        _COMMAND,
        Parameter("cwd", "string", "Directory to run in; {cwd} by default.", may_be_empty=False),
        Parameter(
            "env", "variables", "Environment variables for this command.", longest=128 * 1024
        ),
    ),
)

PROCESS = ToolDefinition(
    name="sandbox_process",
    title="Watch or end a started command",
    description=(
        "Look after a command of sandbox_start: write input to it, wait for output, or end it. "
        "Returns the output since the last call (a long one without its beginning), and running, "
        "or exit_code if the command has ended."
    ),
    parameters=(
        _ID,
        Parameter("input", "string", "Text to write to its standard input, with its line ends."),
        Parameter("end_input", "boolean", "Close its standard input.", default=False),
        Parameter(
            "wait_ms",
            "integer",
            "Wait up to this many milliseconds for output or for the end of the command.",
            default=1_000,
            minimum=0,
            maximum=MAX_WAIT_MS,
        ),
        Parameter("kill", "boolean", "End it, with everything that it started.", default=False),
    ),
)

TOOLS: tuple[ToolDefinition, ...] = (
    RUN,
    PYTHON,
    READ_FILE,
    WRITE_FILE,
    LIST_FILES,
    EDIT_FILE,
    START,
    PROCESS,
)
