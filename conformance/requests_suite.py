"""requests' own tests, with the servers that they start in the same process.

Owns where the tests and the servers' packages come from. Rules: the tests are those of the source
on PyPI, whose version is the image's; most of them talk to httpbin, a Flask program that
pytest-httpbin serves on loopback; on both sides it is the same pure Python, in the directory of
tools. httpbin compresses by Brotli, for which there is no pure package: that page fails. No test
may use the outside.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from conformance.package_suite import PackageSuite
from conformance.suite import Side
from conformance.supplies import Supplies, Workplace
from userland.builder.recipe import Source
from userland.builder.sources import fetch

_SERVER_RECIPES = (
    "python-blinker", "python-click", "python-flask", "python-itsdangerous", "python-jinja2",
    "python-pytest-mock", "python-six", "python-werkzeug",
)  # fmt: skip
_SERVER_WHEELS = (
    ("decorator", "decorator-5.3.1-py3-none-any.whl",
     "f47fe6fdbd2edd623ecfe36875d37aba411624e2670dd395dddae1358689bb3c"),
    ("httpbin", "httpbin-0.10.4-py2.py3-none-any.whl",
     "71862093f371c3a39cfcdcd2f073aaf610b6433f9d4c0130248e676453fca65d"),
    ("PySocks", "PySocks-1.7.1-py3-none-any.whl",
     "2725bd0a9925919b9b51739eea5f9e2bae91e83288108a9ad338b2e3a4435ee5"),
    ("pytest-httpbin", "pytest_httpbin-2.1.0-py3-none-any.whl",
     "b3bf7346cc2ad231447189cd85b458e341056684a7a69d69533dd29692209cdd"),
)  # fmt: skip
_SOURCE = Source(
    "",
    (),
    "requests-2.34.2.tar.gz",
    "f288924cae4e29463698d6d60bc6a4da69c89185ad1e0bcc4104f584e960b9ed",
    pypi="requests",
)
_BROTLI = "import brotlicffi as _brotli"


class RequestsSuite(PackageSuite):
    """All tests of the source; the wheel has none."""

    name = folder = "requests"
    recipe_name = "python-requests"
    program = "requests"
    source_tests = ("tests", "tests")
    tests_use_current_directory = True
    files = ("tests/test_*.py",)
    code: Sequence[str] = (*PackageSuite.code, "requests_suite.py")

    def __init__(self, supplies: Supplies) -> None:
        super().__init__(supplies)
        assert _SOURCE.file == f"requests-{self.recipe.version}.tar.gz"
        self.recipe = replace(self.recipe, source=_SOURCE)

    def _servers(self) -> list[Source]:
        recipes = [self.supplies.recipe(name).source for name in _SERVER_RECIPES]
        wheels = [Source("", (), file, digest, pypi=name) for name, file, digest in _SERVER_WHEELS]
        return [*recipes, *wheels]

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        return [*super().ingredients(side), *(source.sha256 for source in self._servers())]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Also put the servers there."""
        super().make_tree(side, tree, place)
        tools = tree / "tools"
        for source in self._servers():
            with zipfile.ZipFile(fetch(source, self.supplies.cache, place.commands)) as members:
                members.extractall(tools)
        filters = tools / "httpbin/filters.py"
        text = filters.read_text("utf-8")
        assert _BROTLI in text
        filters.write_text(text.replace(_BROTLI, "_brotli = None"), "utf-8")
