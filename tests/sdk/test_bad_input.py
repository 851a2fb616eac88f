"""A mistake in the caller's code is named where it was made, before anything happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import Sandbox

CONSTRUCTOR = [
    ({"timeout_ms": 0}, ValueError, "timeout_ms must be a positive number"),
    ({"timeout_ms": -1}, ValueError, "timeout_ms must be a positive number"),
    ({"timeout_ms": float("nan")}, ValueError, "timeout_ms must be a positive number"),
    ({"timeout_ms": float("inf")}, ValueError, "timeout_ms must be a positive number"),
    (
        {"timeout_ms": "1"},
        TypeError,
        "timeout_ms must be a number of milliseconds or None, not str",
    ),
    (
        {"timeout_ms": True},
        TypeError,
        "timeout_ms must be a number of milliseconds or None, not bool",
    ),
    ({"fs_limit_bytes": -1}, ValueError, "fs_limit_bytes must be positive, not -1"),
    ({"fs_limit_bytes": 1.5}, TypeError, "fs_limit_bytes must be an int, not float"),
    ({"fs_limit_bytes": None}, TypeError, "fs_limit_bytes must be an int, not None"),
    ({"max_inodes": 0}, ValueError, "max_inodes must be positive, not 0"),
    ({"memory_limit_bytes": "1G"}, TypeError, "memory_limit_bytes must be an int, not str"),
    ({"max_processes": 0}, ValueError, "max_processes must be positive, not 0"),
    ({"max_open_files": 0}, ValueError, "max_open_files must be positive, not 0"),
    ({"max_output_bytes": -5}, ValueError, "max_output_bytes must be positive, not -5"),
    ({"env": ["A=b"]}, TypeError, "env must be a mapping of str to str, not list"),
    ({"env": {"A": 1}}, TypeError, r"env\['A'\] must be a str, not int"),
    ({"env": {"A=": "x"}}, ValueError, "name must be non-empty and without '='"),
    ({"env": {"A": "x\0y"}}, ValueError, r"env\['A'\] must not contain a NUL"),
    ({"cwd": "relative"}, ValueError, "cwd must be an absolute path, not 'relative'"),
    ({"cwd": b"/tmp"}, TypeError, "cwd must be a str or a path, not bytes"),
    ({"cwd": "/a\0b"}, ValueError, "cwd must not contain a NUL"),
    ({"no_such_option": 1}, TypeError, "no_such_option"),
]


@pytest.mark.no_userland
@pytest.mark.parametrize(("options", "kind", "message"), CONSTRUCTOR)
def test_bad_options(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Sandbox(**options)


@pytest.mark.no_userland
def test_options_are_keywords_only() -> None:
    with pytest.raises(TypeError):
        Sandbox(30_000)  # type: ignore[call-arg]


CALLS: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (
        lambda s: s.commands.run(None),
        TypeError,
        "command must be a str or a sequence of str, not None",
    ),
    (
        lambda s: s.commands.run(b"ls"),
        TypeError,
        "command must be a str or a sequence of str, not bytes",
    ),
    (lambda s: s.commands.run(5), TypeError, "command must be a str or a sequence of str, not int"),
    (lambda s: s.commands.run([]), ValueError, "command must name a program"),
    (lambda s: s.commands.run([""]), ValueError, r"command\[0\] must name a program"),
    (lambda s: s.commands.run(["ls", 5]), TypeError, r"command\[1\] must be a str, not int"),
    (lambda s: s.commands.run("a\0b"), ValueError, "command must not contain a NUL"),
    (lambda s: s.commands.run(["a", "\0"]), ValueError, r"command\[1\] must not contain a NUL"),
    (lambda s: s.commands.run("\ud800"), ValueError, "command must be encodable as UTF-8"),
    (lambda s: s.commands.run("cat", stdin=5), TypeError, "stdin must be bytes or str, not int"),
    (
        lambda s: s.commands.run("cat", stdin="\ud800"),
        ValueError,
        "stdin must be encodable as UTF-8",
    ),
    (lambda s: s.commands.run("ls", env="A=b"), TypeError, "env must be a mapping"),
    (lambda s: s.commands.run("ls", env={1: "b"}), TypeError, "name must be a str, not int"),
    (lambda s: s.commands.run("ls", cwd=1), TypeError, "cwd must be a str or a path, not int"),
    (lambda s: s.commands.run("ls", cwd=""), ValueError, "cwd must not be empty"),
    (lambda s: s.commands.run("ls", timeout_ms=0), ValueError, "timeout_ms must be a positive"),
    (lambda s: s.commands.run("ls", timeout_ms="1"), TypeError, "timeout_ms must be a number"),
    (lambda s: s.commands.run("ls", on_stdout=1), TypeError, "on_stdout must be callable or None"),
    (lambda s: s.commands.run("ls", on_stderr=[]), TypeError, "on_stderr must be callable or None"),
    (lambda s: s.files.read(None), TypeError, "path must be a str or a path, not None"),
    (lambda s: s.files.read(b"/etc"), TypeError, "path must be a str or a path, not bytes"),
    (lambda s: s.files.read(""), ValueError, "path must not be empty"),
    (lambda s: s.files.read("a\0"), ValueError, "path must not contain a NUL"),
    (
        lambda s: s.files.write("a", None),
        TypeError,
        "data must be bytes, str or a binary file, not None",
    ),
    (
        lambda s: s.files.write("a", 5),
        TypeError,
        "data must be bytes, str or a binary file, not int",
    ),
    (
        lambda s: s.files.write("a", "\ud800"),
        ValueError,
        "data must be encodable as UTF-8; pass bytes",
    ),
    (lambda s: s.files.list(5), TypeError, "path must be a str or a path, not int"),
    (lambda s: s.env.set("", "x"), ValueError, "name must be non-empty"),
    (
        lambda s: s.env.set("A=B", "x"),
        ValueError,
        "name must be non-empty and without '=', not 'A=B'",
    ),
    (lambda s: s.env.set("A", 1), TypeError, "value must be a str, not int"),
    (lambda s: s.env.set("A\0", "x"), ValueError, "name must not contain a NUL"),
    (lambda s: s.env.get(None), TypeError, "name must be a str, not None"),
    (lambda s: s.env.unset(1), TypeError, "name must be a str, not int"),
]


@pytest.mark.parametrize(("call", "kind", "message"), CALLS)
def test_bad_arguments(
    sandbox: Sandbox, call: Callable[[Sandbox], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call(sandbox)
    assert sandbox.files.list() == []


def test_a_very_long_timeout_is_accepted(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(timeout_ms=10**30) as sandbox:
        assert sandbox.commands.run("echo hi").stdout == "hi\n"
