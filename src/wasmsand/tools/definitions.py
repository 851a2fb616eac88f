"""All tools for models in one place: name, description, parameters.

Rules: the schemas for model APIs, the MCP server and the framework adapters all come from this
list; `actions.py` implements each tool under the same name. Descriptions are written for a model:
what the tool is for, what it returns, what to do if the output is too long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wasmsand.sdk.results import NetworkRules
from wasmsand.tools.parameters import Parameter, checked_input, object_schema

MAX_TIMEOUT_MS = 600_000
MAX_LISTED_FILES = 1_000
MAX_FILE_BYTES = 16 * 1024 * 1024
"""Largest file that a tool reads or edits as a whole."""


NO_NETWORK = "There is no network."
_SHOWN_RULES = 50


def network_sentence(rules: NetworkRules | None) -> str:
    """What a model has to know about the network of a sandbox."""
    if rules is None or not rules.allow:
        return NO_NETWORK
    allowed = ["every public host" if rule == "*" else rule for rule in rules.allow]
    shown = ", ".join(allowed[:_SHOWN_RULES])
    more = f" and {len(allowed) - _SHOWN_RULES} more" if len(allowed) > _SHOWN_RULES else ""
    denied = ", ".join(rules.deny[:_SHOWN_RULES])
    but = f" (but not: {denied})" if denied else ""
    return f"The network reaches only: {shown}{more}{but}; everything else is refused."


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

    def with_network(self, sentence: str) -> ToolDefinition:
        """The same tool, described for a sandbox with this network."""
        return replace(self, description=self.description.replace(NO_NETWORK, sentence))

    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the input, as a new object."""
        return object_schema(self.parameters)

    def checked(self, sent: object) -> dict[str, Any]:
        """Check `sent` and return a value for every parameter. Raises `InvalidToolInput`."""
        return checked_input(self.parameters, sent)


_PATH = Parameter(
    "path",
    "string",
    "Path of the file; a relative path starts at /home/user.",
    required=True,
    may_be_empty=False,
)
_STDIN = Parameter("stdin", "string", "Text for standard input; empty by default.")
_CWD = Parameter("cwd", "string", "Directory to run in; /home/user by default.", may_be_empty=False)
_ENV = Parameter("env", "variables", "Environment variables for this call only.")
_TIMEOUT = Parameter(
    "timeout_ms",
    "integer",
    "Kill the command after this many milliseconds (exit code 124).",
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
_OF_COMMANDS = (_STDIN, _CWD, _ENV, _TIMEOUT)
"""Parameters of every tool that runs a command."""

RUN = ToolDefinition(
    name="sandbox_run",
    title="Run a command",
    description=(
        "Run a bash command in a private Linux sandbox with GNU coreutils, grep, sed, gawk, "
        f"find, tar, git, jq, sqlite3 and more. {NO_NETWORK} Files persist from one call "
        "to the next; shell variables and the current directory do not. Returns exit_code, "
        "stdout, stderr and execution_time_ms; a command that fails is a normal result. Long "
        "output is cut in the middle; the text at the cut names the file with the whole output."
    ),
    parameters=(
        Parameter("command", "string", "A script for bash.", required=True, may_be_empty=False),
        *_OF_COMMANDS,
    ),
)

PYTHON = ToolDefinition(
    name="sandbox_python",
    title="Run Python",
    description=(
        "Run Python code in the sandbox, in a new interpreter on the same files as the other "
        "tools, like one cell of a notebook: the value of the last expression, what display() "
        "gets and figures of matplotlib are results; !command and top-level await work. Returns "
        "exit_code, stdout, stderr (with the traceback), execution_time_ms, and results, each "
        "with its text and image."
    ),
    parameters=(
        Parameter("code", "string", "Python source code.", required=True, may_be_empty=False),
        *_OF_COMMANDS,
    ),
    program="python3",
)

READ_FILE = ToolDefinition(
    name="sandbox_read_file",
    title="Read a file",
    description=(
        "Read a file of the sandbox. Returns content and size, and for a text file total_lines. "
        "Content that is not UTF-8 is returned as base64, and encoding says so. If a file is too "
        "long, only its beginning is returned, with truncated: true; use offset and limit to "
        "read the rest."
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
            "Path of the directory; a relative path starts at /home/user.",
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

TOOLS: tuple[ToolDefinition, ...] = (RUN, PYTHON, READ_FILE, WRITE_FILE, LIST_FILES, EDIT_FILE)
BY_NAME: Mapping[str, ToolDefinition] = {tool.name: tool for tool in TOOLS}
