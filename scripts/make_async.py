"""Generates src/wasmsand/sdk/async_sandbox.py, the asynchronous API, from the blocking one.

Every public class of the SDK that waits gets a twin with the same methods, which calls the class
on a thread (`wasmsand.sdk.async_calls`). So both share one implementation and one documentation.
`--check` writes nothing, and fails if the file is out of date.

Rules: a method that blocks becomes a coroutine; a method that returns an iterator returns an
asynchronous one; properties, the environment and the list of snapshots, which never wait, stay the
same. The examples in
docstrings show the blocking API, so they are dropped; `TWINS` has an example for each class, whose
docstring begins like that of the blocking class.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SDK = ROOT / "src" / "wasmsand" / "sdk"
TARGET = SDK / "async_sandbox.py"


@dataclass(frozen=True, slots=True)
class Twin:
    """A class that gets a twin."""

    module: str
    name: str
    example: str
    note: str = ""
    """What the docstring says after the example."""
    give_back: str = ""
    """The method that frees an object that a cancelled task will never receive."""
    in_turns: tuple[str, ...] = ()
    """Methods that run one at a time, and continue if their task is cancelled."""

    @property
    def twin(self) -> str:
        return f"Async{self.name}"


TWINS = (
    Twin(
        "command_handle",
        "CommandHandle",
        """
        async with await sandbox.commands.start("cat -n") as cat:
            await cat.write_stdin("hello\\n")
            await cat.close_stdin()
            async for chunk in cat:
                print(chunk.text)
        """,
        "If a task is cancelled in `wait` or while it iterates, the command keeps running, and the "
        "next `wait` or iteration gets the output.",
        give_back="kill",
        in_turns=("wait",),
    ),
    Twin(
        "commands",
        "Commands",
        """result = await sandbox.commands.run("sort | uniq -c", stdin="b\\na\\nb\\n")""",
        "If a task is cancelled in `run`, its command is ended.",
    ),
    Twin(
        "watching",
        "FileWatch",
        """
        async with await sandbox.files.watch("src") as watch:
            async for event in watch:
                print(event.type, event.path)
        """,
        give_back="close",
        in_turns=("poll",),
    ),
    Twin(
        "files",
        "Files",
        """
        await sandbox.files.write("a.txt", "hello\\n")
        async for piece in sandbox.files.read_stream("a.txt"):
            print(len(piece))
        """,
        "A relative path starts at the sandbox's working directory.",
    ),
    Twin(
        "packages",
        "Packages",
        """
        await sandbox.packages.install("numpy", "humanize>=4")
        [package.name for package in await sandbox.packages.list()]
        """,
        "If a task is cancelled in `install`, the installation continues.",
    ),
    Twin(
        "sandbox_network",
        "SandboxNetwork",
        """
        await sandbox.network.allow("api.example.com:443")
        [event.host for event in await sandbox.network.log()]
        """,
    ),
    Twin(
        "ports",
        "PortStream",
        """
        async with await sandbox.ports.connect(7000) as stream:
            await stream.write(b"hello\\n")
            await stream.read()
        """,
        "If a task is cancelled in `read` or `write`, bytes may be lost: close the stream then.",
        give_back="close",
        in_turns=("read",),
    ),
    Twin(
        "ports",
        "Ports",
        """
        await sandbox.commands.start("python3 -m http.server 8000")
        await sandbox.ports.wait(8000)
        await sandbox.ports.url(8000)
        """,
    ),
    Twin(
        "shell",
        "Shell",
        """
        async with await sandbox.shell() as shell:
            await shell.run("cd /tmp; name=world")
            (await shell.run("echo $name; pwd")).stdout
        """,
        "If a task is cancelled in `run`, its command is ended; the shell remains.",
        give_back="close",
    ),
    Twin(
        "python_session",
        "PythonSession",
        """
        async with await sandbox.python() as session:
            await session.run("import math; radius = 2")
            (await session.run("math.pi * radius ** 2")).value
        """,
        "If a task is cancelled in `run`, its program is interrupted; the interpreter remains.",
        give_back="close",
    ),
    Twin(
        "terminal",
        "Terminal",
        """
        async with await sandbox.pty() as terminal:
            await terminal.write("stty size; exit\\n")
            async for data in terminal:
                print(data)
        """,
        "If a task is cancelled in `read`, output may be lost: use `timeout_ms`, or iterate.",
        give_back="end",
        in_turns=("read",),
    ),
    Twin(
        "sandbox",
        "Sandbox",
        """
        async with AsyncSandbox() as sandbox:
            await sandbox.files.write("a.txt", "hello\\n")
            result = await sandbox.commands.run("wc -c < a.txt")

        sandbox = await AsyncSandbox.create()  # without a block, `kill` ends it
        await sandbox.kill()
        """,
        "The options are those of `Sandbox`. Every method that may wait is a coroutine, and "
        "callbacks may be coroutine functions.",
        give_back="kill",
    ),
    Twin(
        "pool",
        "SandboxPool",
        """
        async with AsyncSandboxPool(4) as pool:
            async with await pool.take() as sandbox:
                await sandbox.commands.run("uname -a")
        """,
        "`make` returns a `Sandbox`, and `setup` gets one: both run in advance, on another thread.",
    ),
)
CALLBACKS = re.compile(r"\b(TextSink|ResultSink|InputSource|DataSink)\b")
"""Types of callbacks; those of the twins run in the event loop."""
BY_NAME = {twin.name: twin for twin in TWINS}
PARTS = {
    "commands": "Commands",
    "files": "Files",
    "packages": "Packages",
    "network": "SandboxNetwork",
    "ports": "Ports",
}
"""Attributes of a sandbox that have a twin."""
PLAIN_PARTS = ("env", "snapshots")
"""Attributes that never wait, and are those of the blocking sandbox."""
ITEMS = {"FileWatch": "FileEvent", "CommandHandle": "OutputChunk", "Terminal": "bytes"}
"""What the iteration over an object yields."""
SESSIONS = ("Shell", "PythonSession")
"""Classes of which one object has one twin, whoever asks for it."""

HEADER = '''\
"""`AsyncSandbox` and its parts: the SDK for asynchronous programs.

Generated from the blocking classes by scripts/make_async.py; do not edit.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, overload

from wasmsand.sdk.async_calls import (
    AsyncDataSink,
    AsyncInputSource,
    AsyncResultSink,
    AsyncTextSink,
    Stream,
    Turns,
    call,
    in_loop,
    known_twin,
    obtain,
    remember_twin,
)
from wasmsand.sdk.backend import Backend
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, SandboxTimeout, SandboxUser
from wasmsand.sdk.command_handle import CommandHandle, OutputChunk
from wasmsand.sdk.commands import Commands
from wasmsand.sdk.environment import Environment
from wasmsand.sdk.files import CHUNK, Files, GuestPath
from wasmsand.sdk.options import HOME, Isolation, Mode, SandboxOptions
from wasmsand.sdk.packages import INSTALL_TIMEOUT_MS, Packages
from wasmsand.sdk.pool import SandboxPool
from wasmsand.sdk.ports import (
    CONNECT_TIMEOUT_MS,
    READ_BYTES,
    WAIT_TIMEOUT_MS,
    Ports,
    PortStream,
)
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.results import (
    CommandResult,
    FileInfo,
    MountDiff,
    MountInfo,
    NetworkRules,
    PackageInfo,
    PortInfo,
    ProcessInfo,
    PythonResult,
    SandboxInfo,
    Usage,
)
from wasmsand.sdk.sandbox import DEFAULTS, Sandbox
from wasmsand.sdk.sandbox_network import SandboxNetwork
from wasmsand.sdk.shell import Shell
from wasmsand.sdk.state import FileOrStream, Running, Snapshot, Snapshots
from wasmsand.sdk.stores import Store
from wasmsand.sdk.terminal import COLUMNS, ROWS, Terminal
from wasmsand.sdk.watching import FileEvent, FileWatch

if TYPE_CHECKING:
    from wasmsand.machine.network.events import NetworkEvent
    from wasmsand.sdk.mounts import Mount, MountMode
    from wasmsand.sdk.network import Network

NOT_ENTERED = (
    "the sandbox does not exist yet: use `async with AsyncSandbox(...) as sandbox`, or "
    "`await AsyncSandbox.create(...)`"
)


def _session_twin(session: Shell | PythonSession) -> AsyncShell | AsyncPythonSession:
    """The twin of a session: always the same one."""
    known = known_twin(session)
    if isinstance(known, AsyncShell | AsyncPythonSession):
        return known
    return AsyncShell(session) if isinstance(session, Shell) else AsyncPythonSession(session)


def _kill_all(sandboxes: list[Sandbox]) -> None:
    for sandbox in sandboxes:
        sandbox.kill()
'''


def generate() -> str:
    """The text of the module, before formatting."""
    parts = [HEADER]
    for twin in TWINS:
        parts.append("\n".join(_class(twin)))
    return "\n\n".join(parts) + "\n"


def _find(module: str, name: str) -> tuple[ast.ClassDef, dict[str, ast.FunctionDef]]:
    """A class of the SDK and its methods, those of its base classes first."""
    tree = ast.parse((SDK / f"{module}.py").read_text(encoding="utf-8"))
    source = next(
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name
    )
    imported = {
        alias.name: node.module.removeprefix("wasmsand.sdk.")
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        if node.module.startswith("wasmsand.sdk.")
        for alias in node.names
    }
    methods: dict[str, ast.FunctionDef] = {}
    for base in source.bases:
        base_name = ast.unparse(base).partition("[")[0]
        if base_name in imported:
            methods |= _find(imported[base_name], base_name)[1]
    methods |= {node.name: node for node in source.body if isinstance(node, ast.FunctionDef)}
    return source, methods


def _class(twin: Twin) -> Iterator[str]:
    source, methods = _find(twin.module, twin.name)
    yield f"class {twin.twin}:"
    summary = (ast.get_docstring(source) or "").partition("\n\n")[0]
    example = "Example:\n" + textwrap.indent(textwrap.dedent(twin.example).strip(), "    ")
    document = "\n\n".join((summary, example, textwrap.fill(twin.note, 96))).strip()
    document = document.replace("\\", "\\\\")
    yield f'    """{textwrap.indent(document, "    ").strip()}\n    """'
    if twin.name == "Sandbox":
        yield from _sandbox_attributes(source)
    elif twin.name != "SandboxPool":
        if twin.name in SESSIONS:
            yield f"    kind = {twin.name}.kind\n"
        yield f"    def __init__(self, blocking: {twin.name}) -> None:"
        yield "        self._blocking = blocking"
        if "__iter__" in methods:
            yield "        self._stream = Stream(lambda: iter(blocking))"
        if twin.in_turns:
            yield "        self._turns = Turns()"
        if twin.name in SESSIONS:
            yield "        remember_twin(blocking, self)"
        yield ""
    for node in methods.values():
        for other in source.body:
            if isinstance(other, ast.FunctionDef) and other.name == node.name:
                yield from _overload(other)
        yield from _method(twin, node)


def _overload(node: ast.FunctionDef) -> Iterator[str]:
    """One of the signatures of a method that has several."""
    if "overload" in {ast.unparse(decorator) for decorator in node.decorator_list}:
        yield "    @overload"
        yield f"    async def {node.name}({_signature(node)}) -> {_returns(node)}: ...\n"


def _sandbox_attributes(source: ast.ClassDef) -> Iterator[str]:
    """The attributes with their docstrings, with the types of the twin."""
    for node in source.body:
        if isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Name)
            name = node.target.id
            yield f"    {name}: {_types(ast.unparse(node.annotation))}"
        elif isinstance(node, ast.Expr) and node is not source.body[0]:
            yield f"    {ast.unparse(node)}"
    yield ""


def _method(twin: Twin, node: ast.FunctionDef) -> Iterator[str]:
    name = node.name
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    if name == "__init__":
        yield from _constructor(twin, node)
    elif name == "__enter__":
        yield f"    async def __aenter__(self) -> {twin.twin}:"
        if twin.name == "Sandbox":
            yield "        if self._make is not None:"
            yield "            make, self._make = self._make, None"
            yield "            self._adopt(await obtain(Sandbox.kill, make))"
            yield "        await call(self._blocking.__enter__)"
        yield "        return self\n"
    elif name == "__exit__":
        yield f"    async def __aexit__({_signature(node)}) -> None:"
        yield f"        await {ast.unparse(node.body[-1])}\n"
    elif name == "__iter__":
        item = ITEMS[twin.name]
        yield f"    def __aiter__(self) -> AsyncIterator[{item}]:"
        yield from _document(node)
        yield "        return self._stream\n"
    elif name == "__repr__":
        yield "    def __repr__(self) -> str:"
        if twin.name == "Sandbox":
            yield "        if self._make is not None:"
            yield '            return "<AsyncSandbox not entered>"'
        yield '        return repr(self._blocking).replace("<", "<Async", 1)\n'
    elif name.startswith("_"):
        return
    elif "property" in decorators:
        yield "    @property"
        yield f"    def {name}(self) -> {_returns(node)}:"
        yield from _document(node)
        if name == "sessions":
            yield "        return [_session_twin(session) for session in self._blocking.sessions]\n"
        else:
            yield f"        return self._blocking.{name}\n"
    elif "staticmethod" in decorators:
        yield "    @staticmethod"
        yield f"    async def {name}({_signature(node)}) -> {_returns(node)}:"
        yield from _document(node)
        yield f"        return await call({_call(f'{twin.name}.{name}', node)})\n"
    elif "classmethod" in decorators:
        yield "    @classmethod"
        yield f"    async def {name}({_signature(node)}) -> {twin.twin}:"
        yield from _document(node)
        call = _call(f"{twin.name}.{name}", node)
        yield f"        return cls._around(await obtain({twin.name}.{twin.give_back}, {call}))\n"
    else:
        yield from _plain_method(twin, node)


def _plain_method(twin: Twin, node: ast.FunctionDef) -> Iterator[str]:
    returns = _returns(node)
    call = _call(f"self._blocking.{node.name}", node)
    if returns.startswith("AsyncIterator"):
        arguments = call.partition(", ")[2]
        yield f"    def {node.name}({_signature(node)}) -> {returns}:"
        yield from _document(node)
        yield f"        return Stream(lambda: self._blocking.{node.name}({arguments}))\n"
        return
    yield f"    async def {node.name}({_signature(node)}) -> {returns}:"
    yield from _document(node)
    if returns == "AsyncSandbox | builtins.list[AsyncSandbox]":
        yield "        wanted = 1 if count is None else count"
        yield f"        made = await obtain(_kill_all, {call.replace(', count', ', wanted')})"
        yield "        twins = [AsyncSandbox._around(sandbox) for sandbox in made]"
        yield "        return twins[0] if count is None else twins\n"
        return
    made = BY_NAME.get(returns.removeprefix("Async"))
    if made is not None and returns.startswith("Async"):
        wrap = "AsyncSandbox._around" if made.name == "Sandbox" else made.twin
        free = f"{made.name}.{made.give_back}"
        yield f"        return {wrap}(await obtain({free}, {call}))\n"
    elif node.name in twin.in_turns:
        yield f"        return await self._turns.call({call})\n"
    elif returns == "None":
        yield f"        await call({call})\n"
    else:
        yield f"        return await call({call})\n"


def _constructor(twin: Twin, node: ast.FunctionDef) -> Iterator[str]:
    if twin.name == "SandboxPool":
        yield f"    def __init__({_signature(node)}) -> None:"
        yield f"        self._blocking = SandboxPool({_arguments(node)})\n"
    if twin.name != "Sandbox":
        return
    yield f"    def __init__({_signature(node)}) -> None:"
    make = f"lambda: Sandbox({_arguments(node)})"
    yield f"        self._make: Callable[[], Sandbox] | None = {make}\n"
    yield "    @classmethod"
    signature = _signature(node).replace("self", "cls", 1)
    yield f"    async def create({signature}) -> AsyncSandbox:"
    yield '        """Create a sandbox without a `with` block. The caller has to `kill` it."""'
    yield f"        return await cls({_arguments(node)}).__aenter__()\n"
    yield "    @classmethod"
    yield "    def _around(cls, blocking: Sandbox) -> AsyncSandbox:"
    yield "        sandbox = cls.__new__(cls)"
    yield "        sandbox._make = None"
    yield "        sandbox._adopt(blocking)"
    yield "        return sandbox\n"
    yield "    def _adopt(self, blocking: Sandbox) -> None:"
    yield "        self._blocking = blocking"
    for name in PLAIN_PARTS:
        yield f"        self.{name} = blocking.{name}"
    for part, kind in PARTS.items():
        yield f"        self.{part} = Async{kind}(blocking.{part})"
    yield ""
    yield "    if not TYPE_CHECKING:  # a type checker would accept any attribute name"
    yield "        def __getattr__(self, name: str) -> object:"
    names = ", ".join(f'"{name}"' for name in ("_blocking", *PLAIN_PARTS, *PARTS))
    yield f"            if name in ({names}):"
    yield "                raise RuntimeError(NOT_ENTERED)"
    yield "            raise AttributeError(name)\n"


def _signature(node: ast.FunctionDef) -> str:
    return _types(ast.unparse(node.args))


def _arguments(node: ast.FunctionDef) -> str:
    """The arguments with which the twin calls the blocking method."""
    own = [argument.arg for argument in node.args.args]
    words = own[1:] if own and own[0] in ("self", "cls") else own
    if node.args.vararg is not None:
        words.append(f"*{node.args.vararg.arg}")
    for argument in node.args.kwonlyargs:
        value = argument.arg
        if argument.annotation is not None and CALLBACKS.search(ast.unparse(argument.annotation)):
            value = f"in_loop({value})"
        words.append(f"{argument.arg}={value}")
    return ", ".join(words)


def _call(function: str, node: ast.FunctionDef) -> str:
    arguments = _arguments(node)
    return f"{function}, {arguments}" if arguments else function


def _returns(node: ast.FunctionDef) -> str:
    assert node.returns is not None, f"{node.name} has no return type"
    return _types(ast.unparse(node.returns))


def _types(text: str) -> str:
    """The types of the blocking API, translated to those of the twin."""
    text = CALLBACKS.sub(r"Async\1", text)
    text = re.sub(r"(?<!\w)Iterator\[", "AsyncIterator[", text)
    # Classes have methods of that name.
    text = re.sub(r"(?<![\w.])list\[", "builtins.list[", text)
    if "Callable" in text:  # `make` and `setup` of a pool get a blocking sandbox
        return text
    for name in BY_NAME:
        text = re.sub(rf"(?<![\w.]){name}(?![\w(])", f"Async{name}", text)
    return text


def _document(node: ast.FunctionDef) -> Iterator[str]:
    """The docstring without its examples."""
    text = ast.get_docstring(node)
    if text is None:
        return
    paragraphs = [p for p in text.split("\n\n") if not p.startswith(("    ", "Example:"))]
    document = textwrap.indent("\n\n".join(paragraphs), "        ").strip()
    document = document.replace("\\", "\\\\")
    end = "\n        " if "\n" in document else ""
    yield f'        """{document}{end}"""'


def formatted(text: str) -> str:
    """The text as `ruff format` formats it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Write the module, or check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the file is out of date"
    )
    arguments = parser.parse_args()
    text = formatted(generate())
    if not arguments.check:
        TARGET.write_text(text, encoding="utf-8")
    elif not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != text:
        print(f"{TARGET.relative_to(ROOT)} is out of date: run python scripts/make_async.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
