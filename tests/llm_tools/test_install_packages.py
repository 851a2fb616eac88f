"""The tool that installs Python packages, which a host has to allow."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox
from wasmsand.machine.packages.offered import registry
from wasmsand.tools import SandboxTools

TOOL = "sandbox_install_packages"


def test_the_tool_is_offered_only_if_the_host_allows_it(sandbox: Sandbox) -> None:
    assert TOOL not in [tool.name for tool in SandboxTools(sandbox).definitions]
    answer = SandboxTools(sandbox).handle(TOOL, {"packages": "six"})
    assert answer["error"]["code"] == "UNKNOWN_TOOL"
    allowed = SandboxTools(sandbox, index_installs=True)
    assert allowed.definitions[-1].name == TOOL
    assert allowed.anthropic()[-1]["input_schema"]["required"] == ["packages"]


def test_it_installs_packages_of_the_image(sandbox: Sandbox) -> None:
    plain = [found for found in registry().all() if not found.native and not list(found.needs())]
    if len(plain) < 2:
        pytest.skip("the image has no packages")
    first, second = plain[:2]
    tools = SandboxTools(sandbox, index_installs=True)
    answer = tools.handle(TOOL, {"packages": f"{first.key}  {second.key}=={second.version}"})
    installed = {f"{found.key} {found.version}" for found in (first, second)}
    assert set(answer["installed"]) == installed - {f"pip {first.version}"}
    assert tools.handle(TOOL, {"packages": first.key}) == {"installed": []}


@pytest.mark.parametrize(
    ("packages", "code"), [("../x", "INVALID_INPUT"), ("", "INVALID_INPUT"), (5, "INVALID_INPUT")]
)
def test_wrong_input_is_answered(packages: object, code: str, sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, index_installs=True)
    assert tools.handle(TOOL, {"packages": packages})["error"]["code"] == code


def test_a_package_that_does_not_exist_is_answered(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    tools = SandboxTools(sandbox, index_installs=True)
    error = tools.handle(TOOL, {"packages": "no-such-package"})["error"]
    assert error["code"] == "PACKAGE_NOT_FOUND"
    assert "no-such-package" in error["message"]
