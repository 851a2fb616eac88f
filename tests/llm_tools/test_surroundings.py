"""Descriptions say what the sandbox has, and nothing that it does not have."""

from __future__ import annotations

from pathlib import Path

from wasmsand import Mount, Sandbox
from wasmsand.tools import SandboxTools


def described(tools: SandboxTools) -> dict[str, str]:
    return {tool.name: tool.description for tool in tools.definitions}


def test_programs_are_those_of_the_image(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox)
    assert "git, make, jq, sqlite3, curl" in described(tools)["sandbox_run"]
    sandbox.files.rm("/usr/bin/jq")
    sandbox.files.rm("/usr/bin/git")
    assert "tar, make, sqlite3" in described(tools)["sandbox_run"]


def test_what_is_absent_is_named(sandbox: Sandbox) -> None:
    text = described(SandboxTools(sandbox))["sandbox_run"]
    assert "There is no network." in text
    assert "There is no apt" in text
    has_sudo = sandbox.files.exists("/usr/bin/sudo")
    assert ("no apt, sudo or docker" in text) is not has_sudo


def test_limits_and_directory_are_those_of_the_options() -> None:
    with Sandbox(timeout_ms=1500, cwd="/srv/work") as sandbox:
        tools = SandboxTools(sandbox)
        text = described(tools)["sandbox_run"]
        assert "A call may take 1.5 s, or timeout_ms." in text
        assert "one shell, which starts in /srv/work:" in text
        path = tools.anthropic()[2]["input_schema"]["properties"]["path"]
        assert path["description"] == "Path of the file; a relative path starts at /srv/work."
        missing = tools.handle("sandbox_read_file", {})["error"]["message"]
        assert missing == (
            "path is missing: Path of the file; a relative path starts at /srv/work."
        )
        assert tools.handle("sandbox_run", {"command": "pwd"})["stdout"] == "/srv/work\n"
    with Sandbox(timeout_ms=None) as sandbox:
        text = described(SandboxTools(sandbox))["sandbox_run"]
        assert "A call has no time limit unless timeout_ms sets one." in text


def test_python_is_named_with_its_version_and_packages(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox)
    version = sandbox.commands.run(
        "python3 -c 'import sys; print(*sys.version_info[:2], sep=\".\")'"
    )
    text = described(tools)["sandbox_python"]
    assert text.startswith(f"Run Python {version.stdout.strip()} code")
    assert "The standard library can be imported. `pip install` in sandbox_run adds" in text
    assert " humanize" not in text  # one of the many others
    sandbox.packages.install("humanize")
    text = described(tools)["sandbox_python"]
    assert "The standard library and humanize can be imported." in text


def test_every_package_that_is_named_can_be_installed(sandbox: Sandbox) -> None:
    text = described(SandboxTools(sandbox))["sandbox_python"]
    named = text.partition("adds, without network: ")[2].partition(" and others.")[0].split(", ")
    assert len(named) > 10
    assert sandbox.commands.run(["pip", "install", "-q", *named]).exit_code == 0


def test_no_field_is_left_open_and_nothing_is_filled_twice(sandbox: Sandbox) -> None:
    with Sandbox(cwd="/srv/{network}") as odd:
        text = str(SandboxTools(odd, max_copies=1, index_installs=True).anthropic())
        assert "/srv/{network}" in text
        assert "/srv/There" not in text
    assert "{" not in "".join(described(SandboxTools(sandbox, max_copies=1)).values())


def test_descriptions_are_short(sandbox: Sandbox) -> None:
    for text in described(SandboxTools(sandbox, max_copies=1, index_installs=True)).values():
        assert len(text) < 1_000


def test_mounted_directories_are_named(tmp_path: Path) -> None:
    mounts = {"/project": Mount(tmp_path, mode="overlay"), "/data": Mount(tmp_path)}
    with Sandbox(mounts=mounts) as sandbox:
        text = described(SandboxTools(sandbox))
        assert (
            "Directories of the user's machine: /project (changes stay in the sandbox), /data (can "
            "be read, not changed)."
        ) in text["sandbox_run"]
        assert "in the sandbox (/project)" in text["sandbox_diff"]
        assert str(tmp_path) not in str(text)


def test_programs_in_the_sandbox_cannot_write_descriptions(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox)
    before = described(tools)
    script = (
        "d=$(python3 -c 'import site; print(site.getusersitepackages())')\n"
        'mkdir -p "$d/obey-me-1.0.dist-info"\n'
        'printf "Metadata-Version: 2.1\\nName: obey-me\\nVersion: 1.0\\n" '
        '> "$d/obey-me-1.0.dist-info/METADATA"\n'
        "python3 -m pip list 2>/dev/null | grep -c obey"
    )
    assert sandbox.commands.run(script).stdout == "1\n"
    assert described(tools) == before
