"""A mistake in the caller's code raises an error that names it, before anything happens."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import (
    CommandError,
    CommandHandle,
    FileError,
    InvalidPathError,
    PythonSession,
    Sandbox,
    Shell,
    StateError,
)
from wasmsand.sdk.commands import Commands
from wasmsand.sdk.environment import Environment
from wasmsand.sdk.files import Files

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


Bad = tuple[Callable[[Any], object], type[Exception], str]
"""A call on a sandbox, and the exception that a user sees."""

NOT_A_COMMAND = "command must be a str or a sequence of str, not "
NOT_A_PATH = "must be a str or a path, not "
NO_NUL = "must not contain a NUL character"


def bad_commands(method: str) -> list[Bad]:
    """Arguments that no method with a command accepts."""

    def call(*args: object, **kwargs: object) -> Callable[[Any], object]:
        return lambda s: getattr(s.commands, method)(*args, **kwargs)

    return [
        (call(None), TypeError, NOT_A_COMMAND + "None"),
        (call(b"ls"), TypeError, NOT_A_COMMAND + "bytes"),
        (call(5), TypeError, NOT_A_COMMAND + "int"),
        (call([]), ValueError, "command must name a program"),
        (call([""]), ValueError, r"command\[0\] must name a program"),
        (call(["ls", 5]), TypeError, r"command\[1\] must be a str, not int"),
        (call("a\0b"), ValueError, f"command {NO_NUL}"),
        (call(["a", "\0"]), ValueError, rf"command\[1\] {NO_NUL}"),
        (call("\ud800"), ValueError, "command must be encodable as UTF-8"),
        (call("cat", stdin=5), TypeError, "stdin must be bytes or str, not int"),
        (call("cat", stdin="\ud800"), ValueError, "stdin must be encodable as UTF-8"),
        (call("ls", env="A=b"), TypeError, "env must be a mapping"),
        (call("ls", env={1: "b"}), TypeError, "name must be a str, not int"),
        (call("ls", env={"A": "\0"}), ValueError, rf"env\['A'\] {NO_NUL}"),
        (call("ls", cwd=1), TypeError, f"cwd {NOT_A_PATH}int"),
        (call("ls", cwd=""), ValueError, "cwd must not be empty"),
        (call("ls", cwd="a\0"), ValueError, f"cwd {NO_NUL}"),
        (call("ls", cwd="/" + "x" * 300), CommandError, "^ENAMETOOLONG: "),
        (call("ls", cwd="x/" * 3000), CommandError, "^ENAMETOOLONG: "),
        (call("ls", cwd="/nowhere"), CommandError, "^ENOENT: .*/nowhere"),
        (call("ls", timeout_ms=0), ValueError, "timeout_ms must be a positive"),
        (call("ls", timeout_ms="1"), TypeError, "timeout_ms must be a number"),
        (
            call(": " + "x" * 200_000),
            CommandError,
            "^E2BIG: an argument is too long; write it with files.write",
        ),
        (call(["true", *["x" * 100_000] * 30]), CommandError, "^E2BIG: "),
        (call("ls", env={"A": "x" * 200_000}), CommandError, "^E2BIG: "),
        (call("ls", no_such_argument=1), TypeError, "no_such_argument"),
    ]


def bad_paths(name: str, call: Callable[[Any, Any], object]) -> list[Bad]:
    """Paths in the sandbox that no method accepts."""
    bad: list[tuple[object, type[Exception], str]] = [
        (None, TypeError, f"{name} {NOT_A_PATH}None"),
        (5, TypeError, f"{name} {NOT_A_PATH}int"),
        (b"/etc", TypeError, f"{name} {NOT_A_PATH}bytes"),
        (["a"], TypeError, f"{name} {NOT_A_PATH}list"),
        ("", ValueError, f"{name} must not be empty"),
        ("a\0b", ValueError, f"{name} {NO_NUL}"),
        ("\ud800", ValueError, f"{name} must be encodable as UTF-8"),
        ("/" + "x" * 300, InvalidPathError, "^ENAMETOOLONG: "),
        ("/" + "x/" * 3000, InvalidPathError, "^ENAMETOOLONG: "),
    ]
    return [(partial(_with_path, call, path), kind, message) for path, kind, message in bad]


def _with_path(call: Callable[[Any, Any], object], path: object, sandbox: Any) -> object:
    return call(sandbox, path)


def bad_callbacks(call: Callable[..., object]) -> list[Bad]:
    """Callbacks that no method accepts."""
    return [
        (lambda s: call(s, on_stdout=1), TypeError, "on_stdout must be callable or None, not int"),
        (lambda s: call(s, on_stderr=[]), TypeError, "on_stderr must be callable or None"),
    ]


def bad_sessions(open_session: Callable[..., object]) -> list[Bad]:
    """Options with which no session is opened."""
    return [
        (lambda s: open_session(s, env=5), TypeError, "env must be a mapping"),
        (lambda s: open_session(s, cwd=5), TypeError, f"cwd {NOT_A_PATH}int"),
        (lambda s: open_session(s, cwd="/nowhere"), CommandError, "^ENOENT: .*/nowhere"),
    ]


HERE = str(Path(__file__).parent)

CALLS: dict[str, list[Bad]] = {
    "commands.run": [
        *bad_commands("run"),
        *bad_callbacks(lambda s, **sinks: s.commands.run("true", **sinks)),
    ],
    "commands.start": bad_commands("start"),
    "commands.kill": [
        (lambda s: s.commands.kill("1"), TypeError, "pid must be an int, not str"),
        (lambda s: s.commands.kill(0), ValueError, "pid must be positive, not 0"),
    ],
    "files.read": bad_paths("path", lambda s, path: s.files.read(path)),
    "files.read_text": [
        *bad_paths("path", lambda s, path: s.files.read_text(path)),
        (lambda s: s.files.read_text("/etc/passwd", encoding="x"), LookupError, "encoding: x"),
    ],
    "files.read_stream": [
        *bad_paths("path", lambda s, path: s.files.read_stream(path)),
        (lambda s: s.files.read_stream("a", chunk_size=0), ValueError, "chunk_size must be pos"),
        (lambda s: s.files.read_stream("a", chunk_size=1.5), TypeError, "chunk_size must be an"),
    ],
    "files.write": [
        *bad_paths("path", lambda s, path: s.files.write(path, "x")),
        (lambda s: s.files.write("a", None), TypeError, "str or a binary file, not None"),
        (lambda s: s.files.write("a", 5), TypeError, "str or a binary file, not int"),
        (lambda s: s.files.write("a", ["x"]), TypeError, "str or a binary file, not list"),
        (lambda s: s.files.write("a", "\ud800"), ValueError, "encodable as UTF-8; pass bytes"),
        (lambda s: s.files.write("a", io.StringIO("x")), TypeError, "opened in binary mode"),
    ],
    "files.write_many": [
        (lambda s: s.files.write_many({5: "x"}), TypeError, f"path {NOT_A_PATH}int"),
        (lambda s: s.files.write_many({"": "x"}), ValueError, "path must not be empty"),
        (lambda s: s.files.write_many({"a\0b": "x"}), ValueError, f"path {NO_NUL}"),
        (lambda s: s.files.write_many({"/" + "x" * 300: ""}), InvalidPathError, "^ENAMETOOLONG: "),
        (lambda s: s.files.write_many(5), TypeError, "files must be a mapping, not int"),
        (lambda s: s.files.write_many({"a": None}), TypeError, "data must be bytes or str, not N"),
        (lambda s: s.files.write_many({}, mode="755"), TypeError, "mode must be an int, not str"),
    ],
    "files.append": [
        *bad_paths("path", lambda s, path: s.files.append(path, "x")),
        (lambda s: s.files.append("a", None), TypeError, "data must be bytes or str, not None"),
    ],
    "files.list": [
        *bad_paths("path", lambda s, path: s.files.list(path)),
        (lambda s: s.files.list(glob=5), TypeError, "glob must be a str, not int"),
    ],
    "files.mkdir": bad_paths("path", lambda s, path: s.files.mkdir(path)),
    "files.rm": [
        *bad_paths("path", lambda s, path: s.files.rm(path)),
        (lambda s: s.files.rm("/proc", recursive=True), FileError, "^(EPERM|EACCES|EBUSY|EROFS): "),
    ],
    "files.rename": [
        *bad_paths("source", lambda s, path: s.files.rename(path, "b")),
        *bad_paths("target", lambda s, path: s.files.rename("/etc/passwd", path)),
        (lambda s: s.files.rename("/etc", "/etc/x"), InvalidPathError, "^EINVAL: "),
    ],
    "files.copy": [
        *bad_paths("source", lambda s, path: s.files.copy(path, "b")),
        *bad_paths("target", lambda s, path: s.files.copy("/etc/passwd", path)),
    ],
    "files.symlink": [
        *bad_paths("path", lambda s, path: s.files.symlink("a", path)),
        (lambda s: s.files.symlink(5, "a"), TypeError, "target must be a str, not int"),
        (lambda s: s.files.symlink("", "a"), ValueError, "target must not be empty"),
        (lambda s: s.files.symlink("x\0", "a"), ValueError, f"target {NO_NUL}"),
        (lambda s: s.files.symlink("x" * 5000, "a"), InvalidPathError, "^ENAMETOOLONG: "),
    ],
    "files.readlink": bad_paths("path", lambda s, path: s.files.readlink(path)),
    "files.stat": bad_paths("path", lambda s, path: s.files.stat(path)),
    "files.exists": bad_paths("path", lambda s, path: s.files.exists(path)),
    "files.chmod": [
        *bad_paths("path", lambda s, path: s.files.chmod(path, 0o644)),
        (lambda s: s.files.chmod("/tmp", "755"), TypeError, "mode must be an int, not str"),
        (lambda s: s.files.chmod("/tmp", -1), ValueError, "mode must be from 0 to 0o7777"),
        (lambda s: s.files.chmod("/tmp", 0o10000), ValueError, "mode must be from 0 to 0o7777"),
    ],
    "files.upload": [
        *bad_paths("path", lambda s, path: s.files.upload(HERE, path)),
        (lambda s: s.files.upload(5, "a"), TypeError, f"host_path {NOT_A_PATH}int"),
        (lambda s: s.files.upload("", "a"), ValueError, "host_path must be a non-empty path"),
        (lambda s: s.files.upload("x\0", "a"), ValueError, "host_path must be a non-empty path"),
        (lambda s: s.files.upload("/no/such", "a"), FileNotFoundError, "/no/such"),
    ],
    "files.download": [
        *bad_paths("path", lambda s, path: s.files.download(path, "/proc/nowhere")),
        (lambda s: s.files.download("/etc", None), TypeError, f"host_path {NOT_A_PATH}None"),
        (lambda s: s.files.download("/etc", b"x"), TypeError, f"host_path {NOT_A_PATH}bytes"),
        (lambda s: s.files.download("/etc", "/proc/nowhere"), OSError, "/proc/nowhere"),
    ],
    "files.export_tar": bad_paths("path", lambda s, path: s.files.export_tar(path)),
    "files.import_tar": [
        *bad_paths("path", lambda s, path: s.files.import_tar(bytes(1024), path)),
        (lambda s: s.files.import_tar(None), TypeError, "archive must be bytes, a binary file or"),
        (lambda s: s.files.import_tar("x"), TypeError, "archive must be bytes, a binary file or"),
        (lambda s: s.files.import_tar(["x"]), TypeError, "archive must be made of bytes, not str"),
    ],
    "files.watch": [
        *bad_paths("path", lambda s, path: s.files.watch(path)),
        (lambda s: s.files.watch(interval_ms=0), ValueError, "interval_ms must be a positive"),
        (lambda s: s.files.watch(interval_ms=None), TypeError, "interval_ms must be a number"),
    ],
    "env.set": [
        (lambda s: s.env.set("", "x"), ValueError, "name must be non-empty"),
        (lambda s: s.env.set("A=B", "x"), ValueError, "without '=', not 'A=B'"),
        (lambda s: s.env.set("A\0", "x"), ValueError, f"name {NO_NUL}"),
        (lambda s: s.env.set(1, "x"), TypeError, "name must be a str, not int"),
        (lambda s: s.env.set("A", 1), TypeError, "value must be a str, not int"),
        (lambda s: s.env.set("A", "\0"), ValueError, f"value {NO_NUL}"),
    ],
    "env.get": [(lambda s: s.env.get(None), TypeError, "name must be a str, not None")],
    "env.unset": [(lambda s: s.env.unset(1), TypeError, "name must be a str, not int")],
    "shell": bad_sessions(lambda s, **options: s.shell(**options)),
    "Shell.run": [
        (lambda s: s.shell().run(None), TypeError, "command must be a str, not None"),
        (lambda s: s.shell().run(["ls"]), TypeError, "command must be a str, not list"),
        (lambda s: s.shell().run("a\0"), ValueError, f"command {NO_NUL}"),
        (lambda s: s.shell().run("a", stdin=5), TypeError, "stdin must be bytes or str, not int"),
        (lambda s: s.shell().run("a", timeout_ms=-1), ValueError, "timeout_ms must be a positive"),
        *bad_callbacks(lambda s, **sinks: s.shell().run("true", **sinks)),
    ],
    "python": bad_sessions(lambda s, **options: s.python(**options)),
    "PythonSession.run": [
        (lambda s: s.python().run(None), TypeError, "code must be a str, not None"),
        (lambda s: s.python().run(b"1"), TypeError, "code must be a str, not bytes"),
        (lambda s: s.python().run("a\0"), ValueError, f"code {NO_NUL}"),
        (lambda s: s.python().run("1", timeout_ms=0), ValueError, "timeout_ms must be a positive"),
        *bad_callbacks(lambda s, **sinks: s.python().run("1", **sinks)),
    ],
    "PythonSession.finish": [
        (lambda s: s.python().finish(timeout_ms="1"), TypeError, "timeout_ms must be a number"),
        (lambda s: s.python().finish(timeout_ms=0), ValueError, "timeout_ms must be a positive"),
    ],
    "allow_network": [
        (lambda s: s.allow_network("a.test"), TypeError, "rules must be a list of rules such as"),
        (lambda s: s.allow_network(5), TypeError, "rules must be a list of rules such as"),
    ],
    "fork": [
        (lambda s: s.fork(0), ValueError, "count must be positive, not 0"),
        (lambda s: s.fork("1"), TypeError, "count must be an int, not str"),
        (lambda s: s.fork(running="x"), ValueError, 'running must be "refuse" or "drop"'),
    ],
    "snapshot": [
        (lambda s: s.snapshot("a/b"), ValueError, "a name has 1 to 255 characters, without '/'"),
        (lambda s: s.snapshot(5), TypeError, "name must be a string, not int"),
        (lambda s: s.snapshot(running="x"), ValueError, 'running must be "refuse" or "drop"'),
    ],
    "restore": [
        (lambda s: s.restore(5), TypeError, "snapshot must be a Snapshot or its name, not int"),
        (lambda s: s.restore("nope"), StateError, "no snapshot has the name 'nope'"),
    ],
    "save": [
        (lambda s: s.save(5), TypeError, "a path or a binary stream is needed, not int"),
        (lambda s: s.save(b"x"), TypeError, "a path or a binary stream is needed, not bytes"),
    ],
    "pause": [(lambda s: s.pause(running="x"), ValueError, 'running must be "refuse" or "drop"')],
    "set_timeout": [
        (lambda s: s.set_timeout("1"), TypeError, "seconds must be a number of seconds, not str"),
        (lambda s: s.set_timeout(-1), ValueError, "seconds must be"),
    ],
    "pty": [
        (lambda s: s.pty(5), TypeError, "command must be"),
        (lambda s: s.pty(cols=0), ValueError, "cols must be"),
        (lambda s: s.pty(rows="x"), TypeError, "rows must be an int, not str"),
    ],
    "kill": [(lambda s: s.kill(discard=5), TypeError, "discard must be a bool, not int")],
    "mount": [
        (lambda s: s.mount(5, "/tmp"), TypeError, "path must be a str or a path, not int"),
        (lambda s: s.mount("rel", "/tmp"), ValueError, "path must be an absolute path, not 'rel'"),
        (lambda s: s.mount("/m", "/tmp", mode="x"), ValueError, "mode must be one of read-only"),
    ],
    "unmount": [(lambda s: s.unmount(5), TypeError, "path must be a str or a path, not int")],
    "diff": [(lambda s: s.diff(5), TypeError, "path must be a str or a path, not int")],
    "apply": [(lambda s: s.apply(5), TypeError, "path must be a str or a path, not int")],
    "CommandHandle.write_stdin": [
        (lambda s: started(s).write_stdin(None), TypeError, "data must be bytes or str, not None"),
        (lambda s: started(s).write_stdin(5), TypeError, "data must be bytes or str, not int"),
    ],
    "CommandHandle.wait": [
        (lambda s: started(s).wait(timeout_ms="1"), TypeError, "timeout_ms must be a number"),
        (lambda s: started(s).wait(timeout_ms=0), ValueError, "timeout_ms must be a positive"),
        *bad_callbacks(lambda s, **sinks: started(s).wait(**sinks)),
    ],
    "CommandHandle.send_signal": [
        (lambda s: started(s).send_signal("TERM"), TypeError, "number must be an int, not str"),
        (lambda s: started(s).send_signal(0), ValueError, "number must be positive, not 0"),
        (lambda s: started(s).send_signal(65), ValueError, "number must be at most 64, not 65"),
    ],
}


def started(sandbox: Any) -> Any:
    """A command that waits for input."""
    return sandbox.commands.start("cat")


@pytest.mark.parametrize("method", CALLS)
def test_bad_arguments(sandbox: Sandbox, method: str) -> None:
    if method.startswith("PythonSession.") and not sandbox.files.exists("/usr/bin/python3"):
        pytest.skip("the image was built without Python")
    for number, (call, kind, message) in enumerate(CALLS[method]):
        with pytest.raises(kind, match=message):
            call(sandbox)
            pytest.fail(f"{method}: no error in row {number}: {message}")
    left = sandbox.files.list()
    assert left == []


@pytest.mark.no_userland
def test_every_public_method_with_arguments_is_in_the_table() -> None:
    places = {
        "": Sandbox,
        "commands.": Commands,
        "files.": Files,
        "env.": Environment,
        "Shell.": Shell,
        "PythonSession.": PythonSession,
        "CommandHandle.": CommandHandle,
    }
    wanted = {
        place + name
        for place, kind in places.items()
        for part in kind.__mro__
        for name, value in vars(part).items()
        if not name.startswith("_")
        and inspect.isfunction(value)
        and len(inspect.signature(value).parameters) > 1
    }
    assert wanted == set(CALLS)


def test_a_very_long_timeout_is_accepted(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(timeout_ms=10**30) as sandbox:
        assert sandbox.commands.run("echo hi").stdout == "hi\n"
