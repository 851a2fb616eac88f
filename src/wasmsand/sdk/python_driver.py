"""The guest's side of `PythonSession`. The host never imports it; its source runs in the sandbox.

The driver reads requests, one per line (see `python_session.request`), from one descriptor, runs
each in `__main__`, and writes messages (see `python_messages`) to another: what is displayed,
questions of `input()`, and the answer. Rules: the driver has its own namespace, so that its names
do not appear in the program's; SIGINT interrupts only the program, and never the writing of a
message; every request gets an answer, whatever the program does, unless it ends the interpreter.
A prepared interpreter serves plain cells itself, in C (userland/recipes/python/prepared/session.c),
and uses the names of this file: what is changed here is changed there.
Everything that a plain expression does not need is a part (`python_guest`), which is compiled when
it is first used. This
file is compiled in pieces, without annotations (see `python_source`): its statements may use only
names defined above them, and no `__future__` imports have an effect.

It runs on the image's Python, and needs only the standard library.
"""

from __future__ import annotations

import ast
import atexit
import builtins
import json
import linecache
import os
import signal
import sys
from _thread import allocate_lock, get_ident
from binascii import a2b_base64, b2a_base64
from itertools import count
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType

TEXT_MAX = 200_000
VALUE_BYTES_MAX = 1 << 20
JSON_WORDS = {True: b"true", False: b"false"}
KEPT_VALUES = 20
AWAIT, PARSE = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, ast.PyCF_ONLY_AST
IS_COROUTINE = 0x80
main = sys.modules["__main__"].__dict__
main_thread = get_ident()
writing = allocate_lock()
token = ""
"""The token of the current request, or of the last one."""
asks = False
"""Whether the host answers `input()` in this request."""
displayed = 0
"""How many things this request has displayed."""
last_kept: object = None
"""The value of `_`."""
running = is_caught = is_sending = was_interrupted = False
"""`is_caught`: whether `answer_to` answers for an exception."""
requests: Requests
answers_fd: int
stored_parts: bytes
"""The sources of the parts, as the host has packed them."""
parts: dict[str, ModuleType] = {}
inputs = [""]
"""The code of the requests."""
numbers = count(1)
"""The numbers of the requests."""


class Requests:
    """The lines that the host sends. It has no thread and no buffer of Python's, so that what was
    read but not used is known."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        """Add what was read by others."""
        self._rest += data

    @property
    def has_part(self) -> bool:
        """Whether the beginning of a line was read."""
        return bool(self._rest)

    @property
    def is_empty(self) -> bool:
        """Whether the next line has to be waited for."""
        return b"\n" not in self._rest

    def readline(self) -> bytes:
        """The next line; empty at the end. An interrupt loses nothing."""
        rest, searched = self._rest, 0
        while (end := rest.find(b"\n", searched) + 1) == 0:
            searched = len(rest)
            piece = os.read(self._fd, 65536 if searched else 8192)
            if not piece:
                return b""
            rest += piece
        line = bytes(rest[:end])
        del rest[:end]
        return line

    def __iter__(self) -> Iterator[bytes]:
        """The lines until the end."""
        return iter(self.readline, b"")


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT: interrupt the program, if one runs."""
    global was_interrupted
    if is_sending:
        was_interrupted = True
    elif running:
        if frame is not None and frame.f_code is answer_to.__code__ and not is_caught:
            was_interrupted = True  # it was called with an interrupt pending
        else:
            raise KeyboardInterrupt


def cut(text: str) -> str:
    """The text, shortened if it is too long."""
    if len(text) <= TEXT_MAX:
        return text
    return f"{text[:TEXT_MAX]}... ({len(text)} characters)"


def encoded(text: str) -> bytes:
    """Text as bytes for a message."""
    return text.encode("utf-8", "surrogatepass")


def flush() -> None:
    """Flush the program's output, so that it comes before the next message."""
    for stream in {sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__}:
        try:
            if stream is not None:
                stream.flush()
        except Exception:
            pass  # the program has closed or replaced the stream


def send(header: str, segments: Iterable[bytes]) -> None:
    """Write a message as one line, completely even if SIGINT arrives meanwhile. It begins with a
    newline, because a program may have written half a line to the descriptor."""
    global is_sending, was_interrupted
    data = b"\t".join([b2a_base64(segment, newline=False) for segment in segments])
    line = f'\n{{"token": "{token}", {header}}}\t'.encode() + data + b"\n"
    is_mine = get_ident() == main_thread
    if is_mine:
        is_sending = True
    try:
        with writing:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(answers_fd, rest) :]
    finally:
        if is_mine:
            is_sending = False
    if is_mine and was_interrupted:
        was_interrupted = False
        if running:
            raise KeyboardInterrupt


def part(name: str) -> Any:
    """A part of the driver, loaded when it is first used."""
    if name not in parts:
        import zlib

        sources = json.loads(zlib.decompress(a2b_base64(stored_parts)))  # noqa: F821 - the host defines it
        module = ModuleType(name)
        module.__dict__.update(driver=driver, __file__=__file__)
        exec(compile(sources[name], __file__, "exec"), module.__dict__)
        parts[name] = module
    return parts[name]


def count_display() -> int:
    """Count one thing that is displayed."""
    global displayed
    displayed += 1
    return displayed


def display(*values: object, **options: Any) -> object:
    """Show values in every form that they offer (see IPython.display.display)."""
    return part("display").display(*values, **options)


def ask(prompt: object = "", /) -> str:
    """Ask the host for a line of input."""
    return str(part("asking").ask(prompt, requests, asks, running))


def described(value: object) -> dict[str, bytes]:
    """The segments of an answer for a value."""
    kind, shown = type(value), cut(repr(value))
    segments = {"repr": encoded(shown)}
    if kind is int and value.bit_length() <= 1024:  # type: ignore[attr-defined]
        segments["value"] = segments["repr"]
    elif kind is str:
        segments["value"] = encoded(encode_basestring(value))  # type: ignore[arg-type]
    elif kind is bool:
        segments["value"] = JSON_WORDS[value]  # type: ignore[index]
    elif kind is float:
        segments["value"] = encoded(json.dumps(value))
    elif kind.__module__ != "builtins":
        part("display").display_value(value, shown)
        if kind.__module__ == "numpy":
            segments.update(part("values").number(value))
    else:
        segments.update(part("values").segments(value))
    for name in ("value", "typed"):
        if len(segments.get(name, b"")) > VALUE_BYTES_MAX:
            del segments[name]
    return segments


def keep(value: object, number: int) -> None:
    """Make the value available as `_` and in `Out`, unless the program has its own `_`."""
    global last_kept
    names, out = builtins.__dict__, builtins.__dict__["Out"]
    if names.get("_") is last_kept:
        names["___"], names["__"], names["_"] = names.get("__"), last_kept, value
        last_kept = value
    out[number] = value
    out.pop(number - KEPT_VALUES, None)


def is_silenced(line: str, column: int) -> bool:
    """Whether a semicolon follows the expression that ends there: then its value is not shown."""
    return ";" in line and line.encode()[column:].lstrip().startswith(b";")


def compiled_tree(tree: ast.Module, name: str) -> tuple[CodeType | None, CodeType | None, int, int]:
    """What `sys._compile_cell` returns for a source: the code of the statements, that of the
    expression at the end, and where the expression ends."""
    body = tree.body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    statements = compile(tree, name, "exec", AWAIT) if body else None
    if not isinstance(last, ast.Expr):
        return statements, None, 0, 0
    expression = compile(ast.Expression(last.value), name, "eval", AWAIT)
    return statements, expression, last.end_lineno or 1, last.end_col_offset or 0


def compiled(code: str, name: str) -> tuple[CodeType | None, CodeType | None, int, int]:
    """In place of `sys._compile_cell`, which only a prepared interpreter has."""
    return compiled_tree(compile(code, name, "exec", PARSE), name)


compile_cell = getattr(sys, "_compile_cell", compiled)


def display_hook(value: object) -> None:
    """`sys.displayhook`: show a value, unless it is None."""
    if value is not None:
        display(value)


def execute(code: str, number: int, cell: Any = None, failure: Exception | None = None) -> object:
    """Run code, and return the value to show, or None. Exceptions of the code pass through. If the
    code is compiled already, `cell` is the result, or `failure` the exception."""
    name = f"<run {number}>"
    lines = code.splitlines(True)
    linecache.cache[name] = (len(code), None, lines, name)
    try:
        if failure is not None:
            raise failure
        statements, expression, line, column = cell or compile_cell(code, name)
    except SyntaxError as error:
        tree = part("lines").translated(code, name)
        if tree is None:
            raise error from None
        statements, expression, line, column = compiled_tree(tree, name)
    codes = [piece for piece in (statements, expression) if piece is not None]
    value: object = None
    for piece in codes:
        if piece.co_flags & IS_COROUTINE:
            value = part("awaiting").run(codes)
            break
    else:
        for piece in codes:
            value = eval(piece, main)
    if expression is None or value is None or is_silenced(lines[line - 1], column):
        return None
    return value


def outcome(value: object, error: BaseException | None) -> object:
    """The value of code that has run already, or the exception that it has raised."""
    if error is not None:
        raise error
    return value


def shown(value: object, number: int) -> dict[str, bytes]:
    """The segments of an answer that shows a value."""
    if sys.displayhook is not display_hook:  # the program has its own
        sys.displayhook(value)
    keep(value, number)
    return described(value)


def answer_to(number: int, work: Callable[..., object], *arguments: Any) -> None:
    """Call `execute` or `outcome`, and answer, also if an exception is raised."""
    global running, is_caught, was_interrupted
    at = 0
    segments: dict[str, bytes] = {}
    try:
        try:
            running = is_caught = True
            try:
                if was_interrupted:
                    was_interrupted = False
                    raise KeyboardInterrupt
                value = work(*arguments)
                if value is not None:
                    segments = shown(value, number)
                at = displayed
            finally:
                if "matplotlib.pyplot" in sys.modules:
                    part("figures").show_open_ones()
        finally:
            running = is_caught = False
    except BaseException as error:
        segments = part("failing").described(error)
    flush()
    names = '", "'.join(segments)
    send(f'"kind": "answer", "at": {at}, "segments": ["{names}"]', segments.values())


def find_spec(name: str, path: object = None, target: object = None) -> Any:
    """Find the modules that exist only in sessions, and notice the import of matplotlib."""
    if name.startswith(("IPython", "matplotlib")):
        return part("imports").find(name, path, target)
    return None


finder: Any = SimpleNamespace(find_spec=find_spec)
driver = SimpleNamespace(
    main=main, file=__file__, main_thread=main_thread, finder=finder, send=send, part=part,
    flush=flush, cut=cut, encoded=encoded, count_display=count_display, input=input,
)  # fmt: skip


def serve(requests_from: int, answers_to: int) -> None:
    """Serve until there are no more requests."""
    global requests, answers_fd
    answers_fd = answers_to
    for fd in (requests_from, answers_to):
        os.set_inheritable(fd, False)
    sys.argv[:] = [""]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.meta_path.insert(0, finder)
    sys.displayhook = display_hook
    atexit.register(main.clear)  # the last function: it closes the files of the program
    builtins.__dict__.update(display=display, input=ask, Out={}, In=inputs)
    signal.signal(signal.SIGINT, interrupt)
    requests = Requests(requests_from)
    rest = getattr(sys, "_serve_session", None)
    if rest is not None:  # the interpreter calls `step` when this program has ended
        rest(requests_from, step, answers_to, globals())
        return
    while step() is not False:
        pass


def step(received: bytes = b"") -> bool | None:
    """Serve the requests that have arrived; the caller may have `received` a part of them. False if
    there will be no more, None if the beginning of another one was read."""
    global token, asks, was_interrupted, displayed
    requests.feed(received)
    try:
        while line := requests.readline():
            # The rest of an answer to `input()` may be left over, if that was interrupted.
            if line.startswith(b"run "):
                text = line.decode()
                token, asks = text[4:20], text[21] == "1"
                was_interrupted, displayed = False, 0
                code, _ = scanstring(text, 24)
                inputs.append(code)
                main.pop("__warningregistry__", None)  # a warning is shown once per cell
                number = next(numbers)
                answer_to(number, execute, code, number)
            if requests.is_empty:
                return None if requests.has_part else True
    except OSError:  # the program has closed a descriptor of the session
        os._exit(1)
    return False
