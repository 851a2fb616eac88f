"""The guest's side of `PythonSession`. The host never imports it; its source runs in the sandbox.

The driver reads requests, one JSON object per line, from one descriptor, runs each in `__main__`,
and writes an answer, also one line, to another. Rules: the driver has its own namespace, so that
its names do not appear in the program's; SIGINT interrupts only the program; every request gets an
answer, whatever the program does, unless it ends the interpreter. Each statement of this file is
compiled separately (see `python_session`): it may use only names defined above it, and no
`__future__` imports have an effect.

It runs on the image's Python, and needs only the standard library.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import signal
import sys
import traceback
from types import CodeType, FrameType, TracebackType

TEXT_MAX = 200_000
VALUE_BYTES_MAX, VALUE_DEPTH_MAX, INTEGER_BITS_MAX = 1 << 20, 50, 1024
main = sys.modules["__main__"].__dict__
running = False


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT: interrupt the program, if one runs."""
    if running:
        raise KeyboardInterrupt


def cut(text: str) -> str:
    """The text, shortened if it is too long."""
    if len(text) <= TEXT_MAX:
        return text
    return f"{text[:TEXT_MAX]}... ({len(text)} characters)"


def is_plain(value: object, depth: int = 0) -> bool:
    """Whether JSON can represent the value without a change."""
    kind = type(value)
    if value is None or kind in (bool, str, float):
        return True
    if isinstance(value, int):
        return kind is int and value.bit_length() <= INTEGER_BITS_MAX
    if depth == VALUE_DEPTH_MAX:
        return False
    if isinstance(value, list):
        return kind is list and all(is_plain(item, depth + 1) for item in value)
    return (
        isinstance(value, dict)
        and kind is dict
        and all(type(k) is str and is_plain(v, depth + 1) for k, v in value.items())
    )


def described(value: object) -> dict[str, object]:
    """The fields of an answer for a value."""
    answer: dict[str, object] = {"repr": cut(repr(value))}
    if is_plain(value):
        encoded = json.dumps(value, ensure_ascii=False)
        if len(encoded.encode("utf-8", "surrogatepass")) <= VALUE_BYTES_MAX:
            answer["value"] = value
    return answer


def failed(error: BaseException, trace: TracebackType | None) -> dict[str, object]:
    """The fields of an answer for an exception."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    try:
        message = str(error)
    except Exception:
        message = "<exception str() failed>"
    lines = traceback.TracebackException(kind, error, trace).format()
    return {"error": {"type": name, "message": cut(message), "traceback": cut("".join(lines))}}


def compiled(code: str, name: str) -> tuple[CodeType, CodeType | None]:
    """The compiled statements, and the expression at the end if there is one."""
    tree = ast.parse(code, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = compile(ast.Expression(tree.body.pop().value), name, "eval")  # type: ignore[attr-defined]
    return compile(tree, name, "exec"), last


def execute(code: str, name: str) -> dict[str, object]:
    """Run code in `__main__`, and return the answer. Exceptions of the code pass through."""
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    statements, last = compiled(code, name)
    exec(statements, main)
    value = None if last is None else eval(last, main)
    return {} if value is None else described(value)


def flush() -> None:
    """Flush the program's output, so that it comes before the answer."""
    for stream in {sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__}:
        try:
            if stream is not None:
                stream.flush()
        except Exception:
            pass  # the program has closed or replaced the stream


def answer_to(code: str, name: str) -> dict[str, object]:
    """Run code, and return the answer, also if the code raises an exception."""
    global running
    try:
        try:
            running = True
            return execute(code, name)
        finally:
            running = False
    except BaseException as error:
        # Drop the frames of this file.
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        return failed(error, trace)


def serve(requests_fd: int, answers_fd: int) -> None:
    """Serve until there are no more requests."""
    for fd in (requests_fd, answers_fd):
        os.set_inheritable(fd, False)
    sys.argv[:] = [""]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    signal.signal(signal.SIGINT, interrupt)
    with open(requests_fd, "rb") as requests:
        for number, line in enumerate(requests, 1):
            request = json.loads(line)
            answer = answer_to(request["code"], f"<run {number}>")
            flush()
            answer["token"] = request["token"]
            encoded = json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass")
            rest = memoryview(encoded + b"\n")
            while rest:
                rest = rest[os.write(answers_fd, rest) :]
