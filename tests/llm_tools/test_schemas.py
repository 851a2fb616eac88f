"""The formats that model APIs expect, and the descriptions that models read."""

from __future__ import annotations

import pytest

from wasmsand.tools import TOOLS, schemas
from wasmsand.tools.actions import ACTIONS
from wasmsand.tools.definitions import INSTALL_PACKAGES

pytestmark = pytest.mark.no_userland


def test_every_tool_has_an_action() -> None:
    assert [tool.name for tool in (*TOOLS, INSTALL_PACKAGES)] == list(ACTIONS)


def test_anthropic_form() -> None:
    described = schemas.anthropic(TOOLS)
    assert [set(tool) for tool in described] == [{"name", "description", "input_schema"}] * len(
        TOOLS
    )
    run = described[0]
    assert run["name"] == "sandbox_run"
    assert run["input_schema"]["required"] == ["command"]
    assert run["input_schema"]["properties"]["command"]["type"] == "string"
    assert run["input_schema"]["additionalProperties"] is False


def test_openai_forms() -> None:
    chat = schemas.openai(TOOLS)
    responses = schemas.openai(TOOLS, api="responses")
    for nested, flat in zip(chat, responses, strict=True):
        assert nested["type"] == flat["type"] == "function"
        assert {"type": "function", **nested["function"]} == flat
    assert chat[0]["function"]["parameters"]["required"] == ["command"]
    with pytest.raises(ValueError, match='api must be "chat" or "responses"'):
        schemas.openai(TOOLS, api="other")  # type: ignore[arg-type]


def test_schemas_are_valid_json_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="comes with the package mcp")
    for tool in TOOLS:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema())


def test_schemas_are_new_objects() -> None:
    schemas.anthropic(TOOLS)[0]["input_schema"].clear()
    assert schemas.anthropic(TOOLS)[0]["input_schema"]["type"] == "object"


def test_every_tool_and_parameter_is_described() -> None:
    for tool in TOOLS:
        assert tool.title
        assert len(tool.description) > 50
        assert all(parameter.description for parameter in tool.parameters)
        assert tool.name.startswith("sandbox_")
