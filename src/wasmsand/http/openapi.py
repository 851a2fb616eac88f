"""The OpenAPI document, made from the table of routes."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any

import msgspec

from wasmsand.http import (
    copy_messages,
    file_messages,
    life_messages,
    messages,
    network_messages,
    package_messages,
    port_messages,
    session_messages,
)
from wasmsand.http.messages import CreateSandbox, FailureBody
from wasmsand.http.routing import AnyRoute
from wasmsand.sdk import results
from wasmsand.sdk.network import NetworkEvent
from wasmsand.sdk.options import OPTIONS

_EVENTS = sys.modules[NetworkEvent.__module__]
_MODULES = (
    messages,
    file_messages,
    copy_messages,
    life_messages,
    network_messages,
    package_messages,
    port_messages,
    session_messages,
    results,
    _EVENTS,
)
"""Where the types of requests and responses are."""
_JSON = "application/json"
_BYTES = "application/octet-stream"
_REFERENCE = "#/components/schemas/{name}"
_DESCRIPTION = (
    "Sandboxes over HTTP. Every error has the schema FailureBody: `code` is for programs, "
    "`errno` is the Linux error name if there is one, `message` is for people."
)


@cache
def document(routes: tuple[AnyRoute, ...], version: str) -> bytes:
    """The document, as JSON. Cached, because generating it takes tens of milliseconds."""
    types = {_key(kind): kind for route in routes for kind in _json_types(route)}
    types[_key(FailureBody)] = FailureBody
    references, components = msgspec.json.schema_components(
        list(types.values()), ref_template=_REFERENCE
    )
    texts = _field_texts(*_MODULES)
    texts |= {
        (CreateSandbox.__name__, option.name): option.help.replace("None", "null")
        for option in OPTIONS
    }
    for name, schema in components.items():
        kind = next(found for module in _MODULES if (found := getattr(module, name, None)))
        _describe(schema, kind, texts)
    schemas = dict(zip(types, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, schemas, components
        )
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "wasmsand", "version": version, "description": _DESCRIPTION},
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
        }
    ).encode("ascii")


def _describe(schema: dict[str, Any], kind: type, texts: Mapping[tuple[str, str], str]) -> None:
    """Describe each field with the docstring below it in the source."""
    for name, field in schema.get("properties", {}).items():
        for owner in kind.__mro__:
            if text := texts.get((owner.__name__, name)):
                field["description"] = text
                break


def _field_texts(*modules: ModuleType) -> dict[tuple[str, str], str]:
    """The docstrings below the fields of the modules' classes, by class and field."""
    found = {}
    for module in modules:
        for owner in ast.parse(inspect.getsource(module)).body:
            if isinstance(owner, ast.ClassDef):
                for field, below in pairwise(owner.body):
                    match field, below:
                        case (
                            ast.AnnAssign(target=ast.Name(id=name)),
                            ast.Expr(value=ast.Constant(value=str() as text)),
                        ):
                            found[owner.name, name] = " ".join(text.split())
    return found


def _json_types(route: AnyRoute) -> list[Any]:
    given = [route.query, route.body, route.answer]
    return [
        kind for kind in given if kind is not None and kind is not bytes and type(kind) is not str
    ]


def _key(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _operation(
    route: AnyRoute, schemas: Mapping[str, Any], components: Mapping[str, Any]
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _identity(route),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", route.path)
        ],
        "responses": {
            str(route.status): {"description": "Done", "content": _content(route, schemas)},
            "default": {
                "description": "Error",
                "content": {_JSON: {"schema": schemas[_key(FailureBody)]}},
            },
        },
        "security": [] if route.public else [{"token": []}],
    }
    if route.query is not None:
        operation["parameters"] += _parameters(components[route.query.__name__])
    if route.body is bytes:
        operation["requestBody"] = {"required": True, "content": {_BYTES: {}}}
    elif route.body is not None:
        content = {_JSON: {"schema": schemas[_key(route.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _identity(route: AnyRoute) -> str:
    words = [word for word in re.split(r"[/.]", route.path) if word and "{" not in word]
    named = "one" if route.path.endswith("}") else ""
    if route.path.endswith("/{path}"):
        named = "path"
    return "_".join([route.method.lower(), *words, *([named] if named else [])])


def _content(route: AnyRoute, schemas: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(route.answer, str):
        content: dict[str, Any] = {route.answer.partition(";")[0]: {}}
    else:
        content = {_JSON: {"schema": schemas[_key(route.answer)]}}
    if route.also is not None:
        content[route.also] = {"schema": {"type": "string"}}
    return content


def _parameters(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": field}
        for name, field in schema["properties"].items()
    ]
