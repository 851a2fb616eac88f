"""`sandbox.env`: environment variables."""

from __future__ import annotations

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import Sandbox


def test_a_variable_reaches_commands(sandbox: Sandbox) -> None:
    sandbox.env.set("FOO", "bar baz")
    assert sandbox.env.get("FOO") == "bar baz"
    assert sandbox.commands.run("printenv FOO").stdout == "bar baz\n"


def test_an_unset_variable_is_none(sandbox: Sandbox) -> None:
    assert sandbox.env.get("FOO") is None


def test_unset(sandbox: Sandbox) -> None:
    sandbox.env.set("FOO", "bar")
    sandbox.env.unset("FOO")
    sandbox.env.unset("FOO")
    assert sandbox.env.get("FOO") is None
    assert sandbox.commands.run("printenv FOO").exit_code == 1


def test_unset_gives_a_builtin_variable_its_value_back(sandbox: Sandbox) -> None:
    sandbox.env.set("HOME", "/tmp")
    assert sandbox.commands.run("echo ~").stdout == "/tmp\n"
    sandbox.env.unset("HOME")
    assert sandbox.commands.run("echo ~").stdout == "/home/user\n"


def test_the_builtin_variables(sandbox: Sandbox) -> None:
    names = ("PATH", "HOME", "USER", "LANG", "PWD", "TERM")
    assert {name: sandbox.env.get(name) for name in names} == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/home/user",
        "USER": "user",
        "LANG": "C.UTF-8",
        "PWD": "/home/user",
        "TERM": "dumb",
    }


def test_all_is_what_a_command_sees(sandbox: Sandbox) -> None:
    sandbox.env.set("FOO", "bar")
    lines = sandbox.commands.run(["env"]).stdout.splitlines()
    assert dict(line.split("=", 1) for line in lines) == sandbox.env.all()


def test_all_is_a_copy(sandbox: Sandbox) -> None:
    sandbox.env.all()["FOO"] = "x"
    assert sandbox.env.get("FOO") is None


def test_nothing_of_the_hosts_environment_is_visible(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_SECRET", "xyzzy")
    assert "xyzzy" not in sandbox.commands.run("env; set; cat /proc/self/environ").stdout


def test_env_of_one_call_wins_and_ends_with_it(sandbox: Sandbox) -> None:
    sandbox.env.set("FOO", "set")
    assert sandbox.commands.run("echo $FOO", env={"FOO": "call"}).stdout == "call\n"
    assert sandbox.commands.run("echo $FOO").stdout == "set\n"


def test_env_of_the_constructor_is_copied(make_sandbox: MakeSandbox) -> None:
    variables = {"FOO": "bar"}
    with make_sandbox(env=variables) as sandbox:
        variables["FOO"] = "changed"
        assert sandbox.env.get("FOO") == "bar"


def test_values_may_hold_anything_but_nul(sandbox: Sandbox) -> None:
    value = "two\nlines = ü 'quoted' $x"
    sandbox.env.set("ODD", value)
    assert sandbox.commands.run('printf %s "$ODD"').stdout == value
