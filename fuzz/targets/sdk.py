"""SDK calls with arbitrary arguments.

An input is a program: it calls methods of `Sandbox` and its parts, with paths, numbers, text and
values of wrong types. Rules: a call returns, or raises a `SandboxError`, or a `TypeError` or
`ValueError` from the SDK's own checks; the sandbox is usable afterwards, unless it was killed.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from typing import Any, Final

from fuzz.machines import prepare_process
from fuzz.target import MIB, Finding, Source, Target
from wasmsand import CommandError, FileWatch, Sandbox, SandboxError
from wasmsand.sdk.option_table import OptionKind
from wasmsand.sdk.options import SETTINGS

_TEXTS: Final = (
    "", "a", "b", "d/e", ".", "..", "/", "/tmp", "/etc/passwd", "/proc/self/fd/0", "/dev/zero",
    "/dev/null", "/dev/full", "/proc", "/proc/1/status", "x" * 255, "x" * 256, "a/" * 2100,
    "nul\0", "\udcff\udcfe", "\ud800", "line\nbreak", "*", "**/*", "[", "fifo", "link", "~",
    "-rf", "\U0001f600", "=", "A", "/tmp/../tmp/./a//b",
)  # fmt: skip
_NUMBERS: Final = (
    0, 1, -1, 2, 0o644, 0o7777, 10_000, 2**31, 2**32, 2**63, -(2**63), 2**64, 10**30, 0.5, -0.5,
    float("nan"), float("inf"), 1e308, True,
)  # fmt: skip
_OTHERS: Final[tuple[Any, ...]] = (
    None, b"", b"bytes", b"x" * 70_000, [], ["a", "b"], {}, {"A": "1"}, {"": ""}, {1: 2}, object(),
    (), {"A": "nul\0"},
)  # fmt: skip
_METHODS: Final = (
    ("files.read", 1), ("files.read_text", 1), ("files.read_stream", 1), ("files.write", 2),
    ("files.append", 2), ("files.list", 1), ("files.mkdir", 1), ("files.rm", 1),
    ("files.rename", 2), ("files.copy", 2), ("files.symlink", 2), ("files.readlink", 1),
    ("files.stat", 1), ("files.exists", 1), ("files.chmod", 2), ("files.export_tar", 1),
    ("files.import_tar", 2), ("files.watch", 1), ("env.set", 2), ("env.get", 1), ("env.unset", 1),
    ("env.all", 0), ("commands.run", 1), ("commands.start", 1), ("commands.list", 0), ("usage", 0),
)  # fmt: skip
_KEYWORDS: Final = (
    "recursive", "parents", "mode", "follow", "cwd", "env", "timeout_ms", "stdin", "encoding",
    "errors", "missing_ok", "exist_ok", "chunk_size", "on_stdout", "pattern",
)  # fmt: skip
_OPTIONS: Final = tuple(
    option.name for option in SETTINGS if option.kind is not OptionKind.HOST_DIRECTORY
)
_MOST_CALLS: Final = 40
_TAKEN_AWAY: Final = frozenset({"EACCES", "ENOENT", "ENOTDIR", "ELOOP", "ENOEXEC"})
"""Errors of running a shell whose file was removed, replaced or made unreadable."""


class SdkCalls(Target):
    """See above."""

    name = "sdk"
    about = "paths, options and arguments of the Python API"
    longest = 2048

    def __init__(self) -> None:
        prepare_process()

    def seeds(self) -> Iterable[bytes]:
        for number in range(len(_METHODS)):
            for kind in range(4):
                yield bytes([0, number, 0, kind, 1, kind, 2, 0])
        for number in range(len(_OPTIONS)):
            yield bytes([1, number, 1, number, 0, 0, 0, 1])

    def run(self, data: bytes) -> None:
        source = Source(data)
        options: dict[str, Any] = {"fs_limit_bytes": 4 * MIB, "max_inodes": 500}
        strange = source.byte() % 4 == 1
        if strange:
            options[source.choice(_OPTIONS)] = _value(source)
        made: list[Sandbox] = []
        _attempt(lambda: made.append(Sandbox(**options)))
        if not made:
            return
        with made[0] as sandbox:
            for _ in range(_MOST_CALLS):
                if source.ended:
                    break
                self._call(sandbox, source)
            if not strange:
                _check_usable(sandbox)

    def _call(self, sandbox: Sandbox, source: Source) -> None:
        name, count = source.choice(_METHODS)
        part: Any = sandbox
        for word in name.split("."):
            part = getattr(part, word, None)
        if part is None:
            return  # a method that this version lacks
        shape = source.byte()
        arguments = [_value(source) for _ in range(count + (shape == 255))]
        keywords = {}
        if shape % 3 == 2:
            keywords[source.choice(_KEYWORDS)] = _value(source)
        _attempt(lambda: _consume(part(*arguments, **keywords)))


def _value(source: Source) -> Any:
    match source.byte() % 8:
        case 0 | 1 | 2 | 3:
            return source.choice(_TEXTS)
        case 4:
            return source.choice(_NUMBERS)
        case 5:
            return source.choice(_OTHERS)
        case 6:
            return source.bytes(source.byte() % 64).decode("utf-8", "surrogateescape")
        case _:
            return source.choice(_TEXTS) + "/" + source.choice(_TEXTS)


def _consume(value: Any) -> None:
    """Read iterators, which work only when read; but not watches, which wait for changes."""
    if isinstance(value, FileWatch):
        value.close()
    elif hasattr(value, "__next__"):
        for count, _ in enumerate(value):
            if count > 10_000:
                return


def _attempt(call: Callable[[], None]) -> None:
    try:
        call()
    except SandboxError:
        pass
    except (TypeError, ValueError, LookupError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1].filename
        own_check = "/wasmsand/sdk/" in place
        wrong_signature = isinstance(error, TypeError) and place == __file__
        unknown_codec = isinstance(error, LookupError) and "unknown" in str(error)
        if not own_check and not wrong_signature and not unknown_codec:
            raise


def _check_usable(sandbox: Sandbox) -> None:
    try:
        sandbox.files.rm("/tmp", recursive=True)
    except SandboxError:
        pass
    for started in sandbox.commands.list():
        assert started.pid > 1
    try:
        sandbox.commands.run("true", cwd="/")
    except CommandError as error:
        if error.errno_name not in _TAKEN_AWAY:
            raise Finding("unusable", f"commands.run: {error!r}") from error
