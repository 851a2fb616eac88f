"""The npm package describes the tool `sandbox_run` as this package does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wasmsand.tools.definitions import RUN

pytestmark = pytest.mark.no_userland

DESCRIBED = Path(__file__).parents[2] / "web" / "src" / "sandbox-run-tool.json"


def test_name_and_schema_are_the_same() -> None:
    described = json.loads(DESCRIBED.read_text(encoding="utf-8"))
    own = json.dumps(RUN.input_schema()).replace("{cwd}", "/home/user")
    assert described == {"name": RUN.name, "input_schema": json.loads(own)}
