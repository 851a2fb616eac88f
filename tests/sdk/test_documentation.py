"""Every public name has a docstring, and every method of the API has an example."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator

import pytest

import wasmsand
from wasmsand import CommandHandle, FileWatch, PythonSession, Sandbox, SandboxPool, Shell
from wasmsand.sdk import async_sandbox
from wasmsand.sdk.commands import Commands
from wasmsand.sdk.environment import Environment
from wasmsand.sdk.files import Files

pytestmark = pytest.mark.no_userland

API = (
    Sandbox,
    Commands,
    Files,
    Environment,
    CommandHandle,
    Shell,
    PythonSession,
    FileWatch,
    SandboxPool,
)
TWINS = [
    value
    for value in vars(async_sandbox).values()
    if inspect.isclass(value) and value.__module__ == async_sandbox.__name__
]


def methods(kind: type) -> Iterator[tuple[str, object]]:
    for name, value in vars(kind).items():
        if not name.startswith("_") and (callable(value) or isinstance(value, classmethod)):
            yield name, getattr(kind, name)


def examples(document: str) -> list[str]:
    """The indented blocks of a docstring."""
    paragraphs = re.findall(r"(?:^    .*\n?)+", inspect.cleandoc(document), re.MULTILINE)
    return [textwrap.dedent(paragraph) for paragraph in paragraphs]


@pytest.mark.parametrize("name", [name for name in wasmsand.__all__ if name != "__version__"])
def test_every_public_name_is_documented(name: str) -> None:
    assert getattr(wasmsand, name).__doc__


@pytest.mark.parametrize("kind", [*API, *TWINS], ids=lambda kind: kind.__name__)
def test_every_class_and_every_blocking_method_has_an_example_that_is_python(kind: type) -> None:
    documents = [(kind.__name__, kind.__doc__)]
    if kind in API:
        documents += [(f"{kind.__name__}.{n}", value.__doc__) for n, value in methods(kind)]
    for name, document in documents:
        assert document, name
        if name in ("Environment.chosen",):
            continue
        found = examples(document)
        assert found, f"{name} has no example"
        for example in found:
            compile(example, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
