"""Each framework's own objects call the sandbox: with the real packages, but no model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from wasmsand import Sandbox
from wasmsand.tools import SandboxTools

NEEDS = "a framework that is not installed: pip install 'wasmsand[adapters]'"


def named(tools: list[Any], name: str) -> Any:
    return next(tool for tool in tools if tool.name == name)


def test_langchain(tools: SandboxTools) -> None:
    pytest.importorskip("langchain_core", reason=NEEDS)
    from wasmsand.tools.adapters.langchain import langchain_tools

    converted = langchain_tools(tools)
    assert [tool.name for tool in converted] == [tool.name for tool in tools.definitions]
    run = named(converted, "sandbox_run")
    assert run.invoke({"command": "echo hi"})["stdout"] == "hi\n"
    assert asyncio.run(run.ainvoke({"command": "exit 3"}))["exit_code"] == 3
    assert set(run.args) == {"command", "stdin", "timeout_ms", "restart"}
    message = run.invoke(
        {"type": "tool_call", "id": "1", "name": "sandbox_run", "args": {"command": "echo hi"}}
    )
    assert json.loads(message.content)["stdout"] == "hi\n"
    missing = named(converted, "sandbox_read_file").invoke({"path": "/nowhere"})
    assert missing["error"]["code"] == "ENOENT"


def test_pydantic_ai(tools: SandboxTools) -> None:
    pytest.importorskip("pydantic_ai", reason=NEEDS)
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from wasmsand.tools.adapters.pydantic_ai import pydantic_ai_tools

    seen: list[Any] = []

    def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            assert "sandbox_run" in [tool.name for tool in info.function_tools]
            return ModelResponse(parts=[ToolCallPart("sandbox_run", {"command": "echo hi"})])
        if len(messages) == 3:
            seen.append(messages[-1].parts[0])
            return ModelResponse(parts=[ToolCallPart("sandbox_read_file", {"path": "/nowhere"})])
        seen.append(messages[-1].parts[0])
        return ModelResponse(parts=[TextPart("done")])

    agent = Agent(FunctionModel(script), tools=pydantic_ai_tools(tools))
    assert asyncio.run(agent.run("go")).output == "done"
    assert seen[0].content["stdout"] == "hi\n"
    assert seen[1].content["error"]["code"] == "ENOENT"


def test_openai_agents(tools: SandboxTools) -> None:
    pytest.importorskip("agents", reason=NEEDS)
    from agents.tool_context import ToolContext

    from wasmsand.tools.adapters.openai_agents import openai_agents_tools

    run = named(openai_agents_tools(tools), "sandbox_run")

    def invoke(sent: str) -> Any:
        context = ToolContext(None, tool_name=run.name, tool_call_id="1", tool_arguments=sent)
        return json.loads(asyncio.run(run.on_invoke_tool(context, sent)))

    assert run.params_json_schema["required"] == ["command"]
    assert invoke('{"command": "echo hi"}')["stdout"] == "hi\n"
    assert invoke("not json")["error"]["code"] == "INVALID_INPUT"
    assert invoke("")["error"]["message"].startswith("command is missing")


def test_smolagents(tools: SandboxTools) -> None:
    pytest.importorskip("smolagents", reason=NEEDS)
    from wasmsand.tools.adapters.smolagents import smolagents_tools

    converted = smolagents_tools(tools)
    run = named(converted, "sandbox_run")
    assert run(command="echo hi")["stdout"] == "hi\n"
    assert run({"command": "exit 3"})["exit_code"] == 3
    assert "command" in run.to_tool_calling_prompt()
    assert named(converted, "sandbox_read_file")(path="/nowhere")["error"]["code"] == "ENOENT"


def test_adapters_offer_what_the_sandbox_can_do(sandbox: Sandbox) -> None:
    pytest.importorskip("langchain_core", reason=NEEDS)
    from wasmsand.tools.adapters.langchain import langchain_tools

    only = SandboxTools(sandbox, only=["sandbox_run", "sandbox_edit_file"])
    assert [tool.name for tool in langchain_tools(only)] == ["sandbox_run", "sandbox_edit_file"]
