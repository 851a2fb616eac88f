"""Every tool that a model can be given, in one place: name, words, parameters.

Rules: schemas for model APIs, the MCP server and the framework adapters are all made from
this list; what a tool does is in `actions.py`, under the same name. Descriptions are
written for a model: what the tool is for, what comes back, what to do when it is too much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wasmsand.tools.parameters import Parameter, checked_input, object_schema

MAX_TIMEOUT_MS = 600_000
MAX_LISTED_FILES = 1_000
MAX_FILE_BYTES = 16 * 1024 * 1024
"""Of a file that is read, or read to be edited, as a whole."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool."""

    name: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    read_only: bool = False
    """Whether it leaves the sandbox as it was."""
    program: str | None = None
    """A program of the image without which the tool cannot work."""

    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the input, as a new object."""
        return object_schema(self.parameters)

    def checked(self, sent: object) -> dict[str, Any]:
        """`sent` as a value for every parameter. Raises `InvalidToolInput`."""
        return checked_input(self.parameters, sent)


_PATH = Parameter(
    "path",
    "string",
    "Path of the file; a relative one starts at /home/user.",
    required=True,
    may_be_empty=False,
)
_STDIN = Parameter("stdin", "string", "Text for standard input; empty if left out.")
_CWD = Parameter(
    "cwd", "string", "Directory to run in; /home/user if left out.", may_be_empty=False
)
_ENV = Parameter("env", "variables", "Environment variables for this call only.")
_TIMEOUT = Parameter(
    "timeout_ms",
    "integer",
    "Kill it after this many milliseconds (exit code 124).",
    minimum=1,
    maximum=MAX_TIMEOUT_MS,
)
_ENCODING = Parameter(
    "encoding",
    "string",
    "How content is written here: utf-8 for text, base64 for any bytes.",
    default="utf-8",
    choices=("utf-8", "base64"),
)

RUN = ToolDefinition(
    name="sandbox_run",
    title="Run a command",
    description=(
        "Run a bash command in a private Linux sandbox with GNU coreutils, grep, sed, gawk, "
        "find, tar, git, jq, sqlite3 and more. There is no network. Files stay from one call "
        "to the next; shell variables and the current directory do not. Returns exit_code, "
        "stdout, stderr and execution_time_ms; a command that fails is a normal result. Long "
        "output is cut in the middle and saved whole to the file that the cut names."
    ),
    parameters=(
        Parameter("command", "string", "A script for bash.", required=True, may_be_empty=False),
        _STDIN,
        _CWD,
        _ENV,
        _TIMEOUT,
    ),
)

PYTHON = ToolDefinition(
    name="sandbox_python",
    title="Run Python",
    description=(
        "Run Python code in the sandbox, in a new interpreter on the same files as the other "
        "tools. Print what you want to see: the value of the last expression is not shown. "
        "Returns exit_code, stdout, stderr (with the traceback) and execution_time_ms."
    ),
    parameters=(
        Parameter("code", "string", "Python source code.", required=True, may_be_empty=False),
        _STDIN,
        _CWD,
        _ENV,
        _TIMEOUT,
    ),
    program="python3",
)

READ_FILE = ToolDefinition(
    name="sandbox_read_file",
    title="Read a file",
    description=(
        "Read a file of the sandbox. Returns content and size; of a text also its total_lines. "
        "Content that is not UTF-8 comes back as base64, and encoding says so. Of a file that "
        "is too long only the beginning comes back, with truncated: true; use offset and limit "
        "to read the rest."
    ),
    parameters=(
        _PATH,
        Parameter("offset", "integer", "First line to read, counted from 1.", minimum=1),
        Parameter("limit", "integer", "How many lines to read.", minimum=1),
    ),
    read_only=True,
)

WRITE_FILE = ToolDefinition(
    name="sandbox_write_file",
    title="Write a file",
    description=(
        "Make a file of the sandbox or replace all it holds; missing directories are made. To "
        "change a part of a file use sandbox_edit_file. Returns path and size."
    ),
    parameters=(
        _PATH,
        Parameter("content", "string", "What the file shall hold.", required=True),
        _ENCODING,
    ),
)

LIST_FILES = ToolDefinition(
    name="sandbox_list_files",
    title="List a directory",
    description=(
        "List a directory of the sandbox, sorted by name: name, type, size in bytes and mode "
        "of each entry; with recursive all below it too, by their paths. At most "
        f"{MAX_LISTED_FILES} come back; truncated says if there are more."
    ),
    parameters=(
        Parameter(
            "path",
            "string",
            "Path of the directory; a relative one starts at /home/user.",
            default=".",
            may_be_empty=False,
        ),
        Parameter("recursive", "boolean", "List what is in directories, too.", default=False),
        Parameter(
            "glob",
            "string",
            "Only names that match this pattern, as *.py; with a slash it is matched with paths "
            "below the directory, and ** stands for any directories.",
            may_be_empty=False,
        ),
    ),
    read_only=True,
)

EDIT_FILE = ToolDefinition(
    name="sandbox_edit_file",
    title="Edit a file",
    description=(
        "Replace text in a file of the sandbox. old_string must stand in the file exactly as "
        "given, white space included, and only once, unless replace_all is true. Returns path "
        "and the number of replacements. If it fails, the file is as it was."
    ),
    parameters=(
        _PATH,
        Parameter(
            "old_string",
            "string",
            "The text to replace, with enough around it to be unique.",
            required=True,
            may_be_empty=False,
        ),
        Parameter("new_string", "string", "What to put in its place.", required=True),
        Parameter("replace_all", "boolean", "Replace every occurrence.", default=False),
    ),
)

TOOLS: tuple[ToolDefinition, ...] = (RUN, PYTHON, READ_FILE, WRITE_FILE, LIST_FILES, EDIT_FILE)
BY_NAME: Mapping[str, ToolDefinition] = {tool.name: tool for tool in TOOLS}
