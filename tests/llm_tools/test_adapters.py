"""Each framework's own objects call the sandbox: with the real packages, but no model."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from wasmsand import Sandbox
from wasmsand.tools import SandboxTools

PNG = b"\x89PNG\r\n\x1a\nrest"
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its own agent
def test_llama_index(sandbox: Sandbox) -> None:
    pytest.importorskip("llama_index.core", reason=NEEDS)
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.base.llms.types import ImageBlock
    from llama_index.core.llms.mock import MockFunctionCallingLLM

    from wasmsand.tools.adapters.llama_index import llama_index_tools

    tools = SandboxTools(sandbox, with_images=True)
    converted = llama_index_tools(tools)
    by_name = {tool.metadata.name: tool for tool in converted}
    assert list(by_name) == [tool.name for tool in tools.definitions]
    run = by_name["sandbox_run"]
    assert run(command="x=1; echo hi").content == "hi\n[exit code 0]"
    assert asyncio.run(run.acall(command="echo $x")).content == "1\n[exit code 0]"
    missing = by_name["sandbox_read_file"](path="/nowhere")
    assert (missing.is_error, "ENOENT" in missing.content) == (True, True)
    assert run(cmd="ls").content.startswith("Error: unknown parameter 'cmd'")
    sandbox.files.write("a", b"\x89PNG\r\n\x1a\n")
    _, image = by_name["sandbox_read_file"](path="a").blocks
    assert isinstance(image, ImageBlock)
    assert image.resolve_image().read() == b"\x89PNG\r\n\x1a\n"
    schema = run.metadata.to_openai_tool()["function"]["parameters"]
    assert schema["required"] == ["command"]
    assert set(schema["properties"]) == {"command", "stdin", "timeout_ms", "restart"}
    FunctionAgent(tools=converted, llm=MockFunctionCallingLLM())


def test_crewai(tools: SandboxTools) -> None:
    pytest.importorskip("crewai", reason="crewai is not installed: it is not part of [adapters]")
    from wasmsand.tools.adapters.crewai import crewai_tools

    converted = crewai_tools(tools)
    assert [tool.name for tool in converted] == [tool.name for tool in tools.definitions]
    run = named(converted, "sandbox_run")
    assert run.run(command="x=1; echo hi") == "hi\n[exit code 0]"
    assert run.to_structured_tool().invoke({"command": "echo $x"}) == "1\n[exit code 0]"
    missing = named(converted, "sandbox_read_file").run(path="/nowhere")
    assert missing == "Error: ENOENT: no such file or directory: /nowhere"
    assert "private Linux sandbox" in run.description
    assert set(run.args_schema.model_fields) == {"command", "stdin", "timeout_ms", "restart"}


@pytest.fixture
def seeing(sandbox: Sandbox) -> SandboxTools:
    sandbox.files.write("a", PNG)
    return SandboxTools(sandbox, with_images=True)


def test_langchain_gets_images(seeing: SandboxTools) -> None:
    pytest.importorskip("langchain_core", reason=NEEDS)
    from wasmsand.tools.adapters.langchain import langchain_tools

    read = named(langchain_tools(seeing), "sandbox_read_file")
    message = read.invoke(
        {"type": "tool_call", "id": "1", "name": "sandbox_read_file", "args": {"path": "a"}}
    )
    (_, image) = message.content_blocks
    assert (image["type"], image["mime_type"]) == ("image", "image/png")
    assert base64.b64decode(image["base64"]) == PNG


def test_pydantic_ai_gets_images(seeing: SandboxTools) -> None:
    pytest.importorskip("pydantic_ai", reason=NEEDS)
    from pydantic_ai import Agent, BinaryContent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from wasmsand.tools.adapters.pydantic_ai import pydantic_ai_tools

    seen: list[Any] = []

    def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("sandbox_read_file", {"path": "a"})])
        seen.extend(messages[-1].parts)
        return ModelResponse(parts=[TextPart("done")])

    agent = Agent(FunctionModel(script), tools=pydantic_ai_tools(seeing))
    assert asyncio.run(agent.run("go")).output == "done"
    assert seen[0].content["size"] == len(PNG)
    images = [item for item in seen[1].content if isinstance(item, BinaryContent)]
    assert [image.data for image in images] == [PNG]


def test_openai_agents_get_images(seeing: SandboxTools) -> None:
    pytest.importorskip("agents", reason=NEEDS)
    from agents import ToolOutputImage, ToolOutputText
    from agents.tool_context import ToolContext

    from wasmsand.tools.adapters.openai_agents import openai_agents_tools

    read = named(openai_agents_tools(seeing), "sandbox_read_file")
    sent = '{"path": "a"}'
    context = ToolContext(None, tool_name=read.name, tool_call_id="1", tool_arguments=sent)
    described, image = asyncio.run(read.on_invoke_tool(context, sent))
    assert isinstance(described, ToolOutputText)
    assert isinstance(image, ToolOutputImage)
    assert image.image_url == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
