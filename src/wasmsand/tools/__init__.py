"""A sandbox as tools for language models, for any framework or none.

    from wasmsand import Sandbox
    from wasmsand.tools import SandboxTools

    with Sandbox() as sandbox:
        tools = SandboxTools(sandbox)
        schemas = tools.anthropic()             # or tools.openai()
        tools.handle("sandbox_run", {"command": "echo hi"})

`definitions.py` describes the tools, `actions.py` implements them, `schemas.py` converts the
descriptions for model APIs, `adapters/` for agent frameworks. The MCP server offers the same
tools.
"""

from __future__ import annotations

from wasmsand.tools.definitions import TOOLS, ToolDefinition, network_sentence
from wasmsand.tools.dispatch import TOOL_ERRORS, SandboxTools, UnknownTool
from wasmsand.tools.parameters import InvalidToolInput, Parameter
from wasmsand.tools.workbench import CommandObserver, Killable

__all__ = [
    "TOOLS",
    "TOOL_ERRORS",
    "CommandObserver",
    "InvalidToolInput",
    "Killable",
    "Parameter",
    "SandboxTools",
    "ToolDefinition",
    "UnknownTool",
    "network_sentence",
]
