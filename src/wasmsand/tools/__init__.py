"""A sandbox as tools for language models, for any framework or none.

    from wasmsand import Sandbox
    from wasmsand.tools import SandboxTools

    with Sandbox() as sandbox:
        tools = SandboxTools(sandbox)
        schemas = tools.anthropic()             # or tools.openai(), tools.gemini()
        tools.handle("sandbox_run", {"command": "echo hi"})

`definitions.py` describes the tools, with the facts of `surroundings.py`; `actions.py` implements
them, on the sessions of `live_sessions.py` and the commands of `background.py`. `schemas.py`
converts the descriptions for model APIs, `answers.py` the results, and `adapters/` both for agent
frameworks. The MCP server offers the same tools.
"""

from __future__ import annotations

from wasmsand.tools.definitions import TOOLS, ToolDefinition
from wasmsand.tools.dispatch import TOOL_ERRORS, SandboxTools, UnknownTool
from wasmsand.tools.parameters import InvalidToolInput, Parameter
from wasmsand.tools.surroundings import network_sentence
from wasmsand.tools.workbench import CancellableCall, CommandObserver, Killable

__all__ = [
    "TOOLS",
    "TOOL_ERRORS",
    "CancellableCall",
    "CommandObserver",
    "InvalidToolInput",
    "Killable",
    "Parameter",
    "SandboxTools",
    "ToolDefinition",
    "UnknownTool",
    "network_sentence",
]
