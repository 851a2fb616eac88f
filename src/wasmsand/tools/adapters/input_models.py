"""The input of a tool as a Pydantic model, for frameworks that want one.

Rules: the model only carries the values and their schema; `SandboxTools.handle` checks them, with
messages for a model.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.parameters import Kind, Parameter

_TYPES: dict[Kind, Any] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "variables": dict[str, str],
    "integers": list[int],
}


def input_model(definition: ToolDefinition) -> type[BaseModel]:
    """A model with a field for each parameter."""
    fields: dict[str, Any] = {
        parameter.name: _field(parameter) for parameter in definition.parameters
    }
    name = "".join(word.title() for word in definition.name.split("_"))
    config = ConfigDict(extra="allow")  # unknown names are refused by `handle`
    return create_model(f"{name}Input", __config__=config, **fields)


def _field(parameter: Parameter) -> tuple[Any, Any]:
    kind = _TYPES[parameter.kind]
    if parameter.choices:
        kind = Literal[parameter.choices]
    if parameter.required:
        return kind, Field(description=parameter.description)
    return kind | None, Field(default=parameter.default, description=parameter.description)
