"""Tool calls as model APIs return them, answered in the form that each API takes."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from types import SimpleNamespace
from typing import Any

import pytest

from wasmsand import AsyncSandbox, PackageError, Sandbox
from wasmsand.tools import SandboxTools

PNG = b"\x89PNG\r\n\x1a\nrest"
SHOW = f"from IPython.display import Image\nprint('printed')\ndisplay(Image(data={PNG!r}))\n'value'"
TEXT = "printed\n[result]\n'value'\n[exit code 0]"
DATA = base64.b64encode(PNG).decode()


@pytest.mark.parametrize("make", [dict, SimpleNamespace])
def test_anthropic_gets_text_and_image_blocks(tools: SandboxTools, make: Any) -> None:
    block = make(type="tool_use", id="t1", name="sandbox_python", input={"code": SHOW})
    assert tools.answer_anthropic(block) == {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [
            {"type": "text", "text": TEXT},
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": DATA},
            },
        ],
    }
    block = make(type="tool_use", id="t2", name="sandbox_read_file", input={"path": "/nowhere"})
    assert tools.answer_anthropic(block) == {
        "type": "tool_result",
        "tool_use_id": "t2",
        "content": [{"type": "text", "text": "Error: ENOENT: no such file or directory: /nowhere"}],
        "is_error": True,
    }


@pytest.mark.parametrize("make", [dict, SimpleNamespace])
def test_openai_chat_completions_get_text_and_the_path_of_an_image(
    tools: SandboxTools, sandbox: Sandbox, make: Any
) -> None:
    function = make(name="sandbox_python", arguments=json.dumps({"code": SHOW}))
    answer = tools.answer_openai(make(id="c1", type="function", function=function))
    assert (answer["role"], answer["tool_call_id"]) == ("tool", "c1")
    before, after = answer["content"].split("[image saved in ")
    path, rest = after.split("]\n", 1)
    assert before + rest == TEXT
    assert sandbox.files.read(path) == PNG


def test_openai_responses_get_images(tools: SandboxTools) -> None:
    arguments = json.dumps({"code": SHOW})
    call = {
        "type": "function_call",
        "call_id": "c1",
        "name": "sandbox_python",
        "arguments": arguments,
    }
    assert tools.answer_openai(call) == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": [
            {"type": "input_text", "text": TEXT},
            {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"},
        ],
    }
    plain = tools.answer_openai({**call, "name": "sandbox_run", "arguments": '{"command": "pwd"}'})
    assert plain["output"] == "/home/user\n[exit code 0]"


def test_the_answers_are_of_the_types_of_the_openai_package(tools: SandboxTools) -> None:
    types = pytest.importorskip("openai.types.responses", reason="comes with openai-agents")
    from pydantic import TypeAdapter

    call = {"call_id": "c", "name": "sandbox_python", "arguments": json.dumps({"code": SHOW})}
    answer = tools.answer_openai(call)
    TypeAdapter(types.ResponseInputItemParam).validate_python(answer)


def test_gemini_gets_a_function_response(tools: SandboxTools) -> None:
    call = {"id": "g1", "name": "sandbox_run", "args": {"command": "echo hi"}}
    assert tools.answer_gemini(call) == {
        "functionResponse": {
            "id": "g1",
            "name": "sandbox_run",
            "response": {"output": "hi\n[exit code 0]"},
        }
    }
    wrong = tools.answer_gemini(SimpleNamespace(name="sandbox_run", args=None))
    assert wrong["functionResponse"]["response"]["error"].startswith("Error: command is missing")
    (declared,) = tools.gemini()
    assert declared["functionDeclarations"][0]["parametersJsonSchema"]["required"] == ["command"]


@pytest.mark.parametrize(
    "arguments", ["not json", "[1]", "", "null", '{"command": 5}', "[" * 100_000, None, 5]
)
def test_arguments_that_are_not_an_object_are_an_error_for_the_model(
    tools: SandboxTools, arguments: object
) -> None:
    call: dict[str, object] = {
        "id": "c",
        "function": {"name": "sandbox_run", "arguments": arguments},
    }
    assert tools.answer_openai(call)["content"].startswith("Error: ")
    call = {"call_id": "c", "name": "sandbox_run", "arguments": arguments}
    assert tools.answer_openai(call)["output"].startswith("Error: ")
    answer = tools.answer_anthropic({"id": "c", "name": "sandbox_run", "input": arguments})
    assert answer["is_error"] is True


@pytest.mark.parametrize("name", [None, 5, "", "x" * 10_000, ["sandbox_run"]])
def test_a_name_that_is_no_tool_is_an_error_for_the_model(tools: SandboxTools, name: Any) -> None:
    answer = tools.answer_anthropic({"id": "c", "name": name, "input": {}})
    assert answer["is_error"] is True
    assert "unknown tool" in answer["content"][0]["text"]
    assert len(answer["content"][0]["text"]) < 1_000


def test_an_image_file_is_an_image_for_models_that_see(sandbox: Sandbox) -> None:
    sandbox.files.write("a", PNG)
    sandbox.files.write("jpeg", b"\xff\xd8\xff\xe0")
    sandbox.files.write("large", PNG + bytes(3_500_000))
    seeing = SandboxTools(sandbox, with_images=True)
    assert seeing.handle("sandbox_read_file", {"path": "a"}) == {
        "size": 12,
        "image": {"mime_type": "image/png", "size": 12, "base64": DATA},
        "truncated": False,
    }
    answer = seeing.handle("sandbox_read_file", {"path": "jpeg"})
    assert answer["image"]["mime_type"] == "image/jpeg"
    assert seeing.handle("sandbox_read_file", {"path": "large"})["encoding"] == "base64"
    blind = SandboxTools(sandbox).handle("sandbox_read_file", {"path": "a"})
    assert blind["encoding"] == "base64"


def test_the_tools_of_an_asynchronous_sandbox() -> None:
    async def test() -> None:
        async with AsyncSandbox() as sandbox:
            tools = SandboxTools(sandbox)
            await sandbox.files.write("f", "hello")
            first, second = await asyncio.gather(
                tools.handle_async("sandbox_run", {"command": "cat f"}),
                tools.handle_async("sandbox_python", {"code": "open('f').read()"}),
            )
            assert first["stdout"] == "hello"
            assert second["results"] == [{"text": "'hello'"}]
            await tools.handle_async("sandbox_run", {"command": "x=1"})
            began = time.monotonic()
            slow = asyncio.create_task(
                tools.handle_async("sandbox_run", {"command": "touch begun; sleep 60"})
            )
            while not await sandbox.files.exists("begun"):
                await asyncio.sleep(0.01)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            after = await tools.handle_async("sandbox_run", {"command": "echo $x"})
            assert after["stdout"] == "1\n"
            assert time.monotonic() - began < 20

    asyncio.run(test())


def test_only_a_sandbox_has_tools() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        SandboxTools(AsyncSandbox())
    for wrong in (None, "sandbox", Sandbox):
        with pytest.raises(TypeError, match="sandbox must be a Sandbox or an AsyncSandbox"):
            SandboxTools(wrong)  # type: ignore[arg-type]


def test_figures_are_images_and_tables_are_text() -> None:
    try:
        sandbox = Sandbox(packages=["matplotlib", "pandas"])
    except PackageError:
        pytest.skip("the image was built without the stage of packages")
    code = (
        "import matplotlib.pyplot as plt, pandas as pd\n"
        "plt.plot([1, 4, 9])\n"
        "pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})"
    )
    with sandbox:
        call = {"id": "t", "name": "sandbox_python", "input": {"code": code}}
        text, figure = SandboxTools(sandbox).answer_anthropic(call)["content"]
    assert "   a  b\n0  1  x\n1  2  y\n" in text["text"]
    assert text["text"].endswith("[exit code 0]")
    assert base64.b64decode(figure["source"]["data"]).startswith(b"\x89PNG\r\n\x1a\n")


def test_schemas_and_answers_are_of_the_types_of_the_anthropic_package(
    tools: SandboxTools,
) -> None:
    types = pytest.importorskip("anthropic.types", reason="pip install anthropic")
    from pydantic import TypeAdapter

    for entry in (*tools.anthropic(), *tools.anthropic(native=True)):
        TypeAdapter(types.ToolUnionParam).validate_python(entry)
    call = types.ToolUseBlock(type="tool_use", id="t", name="sandbox_python", input={"code": SHOW})
    TypeAdapter(types.ToolResultBlockParam).validate_python(tools.answer_anthropic(call))


def test_schemas_and_answers_are_of_the_types_of_the_gemini_package(tools: SandboxTools) -> None:
    types = pytest.importorskip("google.genai.types", reason="pip install google-genai")
    (declared,) = tools.gemini()
    assert types.Tool.model_validate(declared).function_declarations[0].name == "sandbox_run"
    call = types.FunctionCall(id="g", name="sandbox_run", args={"command": "echo hi"})
    part = types.Part.model_validate(tools.answer_gemini(call))
    assert part.function_response.response == {"output": "hi\n[exit code 0]"}
