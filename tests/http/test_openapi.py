"""The OpenAPI document describes what the server does."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any, ClassVar

import pytest

from wasmsand.http.failures import EXCEPTIONS
from wasmsand.http.openapi import document
from wasmsand.http.reference_page import HEADERS, reference_page
from wasmsand.http.routes import ROUTES

pytestmark = pytest.mark.no_userland


@pytest.fixture(scope="module")
def found() -> Any:
    return json.loads(document(ROUTES, "1.2.3"))


def references(value: Any) -> Iterator[str]:
    """Every `$ref` in a document."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_route_is_described_once(found: Any) -> None:
    described = {
        (method.upper(), path) for path, methods in found["paths"].items() for method in methods
    }
    assert described == {(route.method, route.path) for route in ROUTES}
    assert len(ROUTES) == len(described)
    assert found["info"]["version"] == "1.2.3"


def test_every_reference_leads_somewhere(found: Any) -> None:
    names = {reference.removeprefix("#/components/schemas/") for reference in references(found)}
    assert names <= set(found["components"]["schemas"])


def test_every_operation_has_a_name_of_its_own(found: Any) -> None:
    names = [
        operation["operationId"]
        for methods in found["paths"].values()
        for operation in methods.values()
    ]
    assert len(set(names)) == len(names)


def test_parameters_and_bodies_are_described(found: Any) -> None:
    operation = found["paths"]["/v1/sandboxes/{sandbox}/files"]["get"]
    assert [(item["name"], item["in"], item["required"]) for item in operation["parameters"]] == [
        ("sandbox", "path", True),
        ("path", "query", True),
        ("offset", "query", False),
        ("count", "query", False),
    ]
    run = found["paths"]["/v1/sandboxes/{sandbox}/run"]["post"]
    assert set(run["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    schema = found["components"]["schemas"]["RunCommand"]
    assert schema["required"] == ["command"]
    assert schema["additionalProperties"] is False


def test_fields_are_described_as_in_the_source(found: Any) -> None:
    schemas = found["components"]["schemas"]
    assert schemas["RunCommand"]["properties"]["env"]["description"] == (
        "Added to the sandbox's variables."
    )
    # Fields of the base class, and of the SDK.
    assert "whole environment" in schemas["StartCommand"]["properties"]["environ"]["description"]
    assert "Permission bits" in schemas["FileInfo"]["properties"]["mode"]["description"]
    assert not [name for name, schema in schemas.items() if "description" not in schema]


def test_public_requests_need_no_token(found: Any) -> None:
    open_paths = {
        path
        for path, methods in found["paths"].items()
        for operation in methods.values()
        if not operation["security"]
    }
    assert open_paths == {
        "/",
        "/docs",
        "/healthz",
        "/openapi.json",
        "/playground",
        "/playground/{path}",
    }


def test_an_exception_comes_before_its_base_class() -> None:
    kinds = [kind for kind, _, _ in EXCEPTIONS]
    for index, kind in enumerate(kinds):
        assert not any(issubclass(later, kind) for later in kinds[index + 1 :])


def test_the_page_has_every_request_and_every_object(found: Any) -> None:
    page = reference_page(document(ROUTES, "1.2.3"), "localhost:8750")
    for path, methods in found["paths"].items():
        for method in methods:
            assert f"<b>{method.upper()}</b> <code>{path}</code>" in page
    anchors = set(re.findall(r'id="([^"]+)"', page))
    assert {name.lower() for name in found["components"]["schemas"]} <= anchors
    assert set(re.findall(r'href="#([^"]+)"', page)) <= anchors
    assert len(anchors) == len(re.findall(r'id="', page)), "no anchor twice"
    assert "1.2.3" in page


def test_the_page_is_well_formed() -> None:
    class Elements(HTMLParser):
        open: ClassVar[list[str]] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag != "meta":
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    parser = Elements()
    parser.feed(reference_page(document(ROUTES, "1.2.3"), ""))
    parser.close()
    assert parser.open == []


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("sandboxes.example:8000", "http://sandboxes.example:8000"),
        ("[::1]:8750", "http://[::1]:8750"),
        ('"><script>alert(1)</script>', "http://127.0.0.1:8750"),
        ("", "http://127.0.0.1:8750"),
    ],
)
def test_the_examples_have_the_address_of_the_request(host: str, shown: str) -> None:
    page = reference_page(document(ROUTES, "1.2.3"), host)
    assert f"URL={shown}\n" in page
    assert "<script" not in page


def test_the_policy_of_the_page_allows_its_style_and_nothing_else() -> None:
    policy = HEADERS["Content-Security-Policy"]
    (style,) = re.findall(
        r"<style>(.*?)</style>", reference_page(document(ROUTES, "1"), ""), re.DOTALL
    )
    assert b64encode(sha256(style.encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
