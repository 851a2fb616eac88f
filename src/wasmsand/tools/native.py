"""Anthropic's own tools, which its models know without a schema: bash and the text editor.

Owns their versions, names and parameters, and which of our tools they stand for. Rules: a native
tool is there only if the tools that it stands for are offered, so `only` limits both. The editor
itself is in `editor.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from wasmsand.tools import definitions
from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.editor import edit
from wasmsand.tools.parameters import InvalidToolInput, Parameter
from wasmsand.tools.shell_tool import run_script
from wasmsand.tools.workbench import Workbench

BASH_TYPE: Final = "bash_20250124"
EDITOR_TYPE: Final = "text_editor_20250728"
_COMMANDS: Final = ("view", "create", "str_replace", "insert")

BASH: Final = ToolDefinition(
    name="bash",
    title="Bash",
    description="Run a command in a shell that keeps its state.",
    parameters=(
        Parameter(
            "command",
            "string",
            "The command; needed unless restart is true.",
            longest=definitions.MAX_SOURCE_CHARACTERS,
        ),
        Parameter("restart", "boolean", "Start a new shell.", default=False),
    ),
)
EDITOR: Final = ToolDefinition(
    name="str_replace_based_edit_tool",
    title="Text editor",
    description="View, create and change files.",
    parameters=(
        Parameter("command", "string", "What to do.", required=True, choices=_COMMANDS),
        Parameter(
            "path", "string", "Path of the file or directory.", required=True, may_be_empty=False
        ),
        Parameter("file_text", "string", "create: the content of the file."),
        Parameter("old_str", "string", "str_replace: the text to replace."),
        Parameter("new_str", "string", "str_replace: the new text."),
        Parameter("insert_line", "integer", "insert: after which line.", minimum=0),
        Parameter("insert_text", "string", "insert: the text."),
        Parameter("view_range", "integers", "view: the first and the last line."),
    ),
)
_STANDS_FOR: Final[Mapping[str, tuple[ToolDefinition, ...]]] = {
    BASH.name: (definitions.RUN,),
    EDITOR.name: (
        definitions.READ_FILE,
        definitions.WRITE_FILE,
        definitions.LIST_FILES,
        definitions.EDIT_FILE,
    ),
}


def native_tools(offered: Collection[ToolDefinition]) -> list[ToolDefinition]:
    """The native tools that stand for some of the offered ones."""
    names = {tool.name for tool in offered}
    return [
        tool
        for tool in (BASH, EDITOR)
        if all(each.name in names for each in _STANDS_FOR[tool.name])
    ]


def typed_entries(native: Collection[ToolDefinition], output_limit: int) -> list[dict[str, Any]]:
    """The entries for the API, which knows these tools by their types."""
    entries: list[dict[str, Any]] = []
    for tool in native:
        if tool.name == BASH.name:
            entries.append({"type": BASH_TYPE, "name": tool.name})
        else:
            entries.append({"type": EDITOR_TYPE, "name": tool.name, "max_characters": output_limit})
    return entries


def others(
    offered: Collection[ToolDefinition], native: Collection[ToolDefinition]
) -> list[ToolDefinition]:
    """The offered tools that no native tool stands for. Their descriptions name the native ones."""
    replaced = {each.name for tool in native for each in _STANDS_FOR[tool.name]}
    names = {each.name: tool.name for tool in native for each in _STANDS_FOR[tool.name]}
    kept = [tool for tool in offered if tool.name not in replaced]
    return [replace(tool, description=_renamed(tool.description, names)) for tool in kept]


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for ours, native in names.items():
        text = text.replace(ours, native)
    return text


def bash(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`bash`."""
    timeout_ms = bench.sandbox.options.timeout_ms
    command = given["command"]
    if not command and not given["restart"]:
        raise InvalidToolInput("command is missing; it is needed unless restart is true")
    if not command:
        with bench.live.shell.turn(timeout_ms, fresh=True):
            return {"text": "the shell was restarted"}
    return run_script(bench, {**given, "stdin": None, "timeout_ms": None})


NATIVE_ACTIONS: Final[Mapping[str, Callable[[Workbench, Mapping[str, Any]], dict[str, Any]]]] = {
    BASH.name: bash,
    EDITOR.name: edit,
}
