"""What `!command`, `%magic` and `%%magic` lines do.

Rules: names and output are IPython's; a magic that does not exist here is a `UsageError` that lists
those that do. Commands inherit standard output and standard error, so their output is streamed.
"""

from __future__ import annotations

import builtins
import importlib
import os
import re
import shlex
import statistics
import subprocess
import sys
import time
import timeit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from wasmsand.sdk.python_driver import driver

VARIABLE = re.compile(r"\$\$|\$([A-Za-z_]\w*)|(?<!\$)\{([^{}]+)\}")
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
previous_directory = os.getcwd()


class UsageError(Exception):
    """A magic that does not exist, or wrong arguments."""

    __module__ = "builtins"


def expanded(text: str) -> str:
    """The command with the values of Python's variables: `$name` and `{expression}`. What is not
    defined in Python is left to the shell; `$$` is `$`."""

    def value(found: re.Match[str]) -> str:
        name, expression = found.groups()
        if name is not None:
            return str(driver.main[name]) if name in driver.main else found[0]
        if expression is None:
            return "$"
        try:
            return str(eval(expression, driver.main))
        except Exception:
            return found[0]

    return VARIABLE.sub(value, text)


def run(argv: list[str], **options: Any) -> int:
    """Run a program on the session's streams."""
    driver.flush()
    status = subprocess.run(argv, stdin=subprocess.DEVNULL, check=False, **options).returncode
    builtins.__dict__["_exit_code"] = status
    return status


def system(command: str) -> None:
    """`!command`."""
    run(["bash", "-c", expanded(command)])


def output(command: str) -> list[str]:
    """`name = !command`: the lines that it prints, on either stream."""
    driver.flush()
    argv = ["bash", "-c", expanded(command)]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    builtins.__dict__["_exit_code"] = done.returncode
    return done.stdout.decode("utf-8", "replace").splitlines()


def magic(name: str, rest: str) -> Any:
    """`%name rest`."""
    function = LINE_MAGICS.get(name)
    if function is None:
        raise unknown(f"%{name}", LINE_MAGICS, "%")
    return function(expanded(rest) if name in EXPANDED else rest)


def cell(name: str, rest: str, body: str) -> Any:
    """`%%name rest`, and the other lines of the cell."""
    function = CELL_MAGICS.get(name)
    if function is None:
        raise unknown(f"%%{name}", CELL_MAGICS, "%%")
    return function(expanded(rest) if name in EXPANDED else rest, body)


def unknown(shown: str, table: dict[str, Any], sign: str) -> UsageError:
    names = ", ".join(f"{sign}{name}" for name in table)
    return UsageError(f"{shown} does not exist in this session; there are: {names}")


def explain(name: str) -> None:
    """`name?`."""
    try:
        value = eval(name, driver.main)
    except Exception:
        print(f"Object `{name}` not found.")
        return
    import inspect

    try:
        print(f"Signature: {name}{inspect.signature(value)}")
    except (TypeError, ValueError):
        pass
    print(f"Type: {type(value).__name__}\nDocstring: {inspect.getdoc(value) or '<no docstring>'}")


def cd(rest: str) -> None:
    """`%cd DIRECTORY`, `%cd -`, `%cd`."""
    global previous_directory
    words = [word for word in shlex.split(rest) if word != "-q"]
    here = os.getcwd()
    target = words[0] if words else "~"
    os.chdir(previous_directory if target == "-" else os.path.expanduser(target))
    previous_directory = here
    if "-q" not in shlex.split(rest):
        print(os.getcwd())


def env(rest: str) -> Any:
    """`%env`, `%env NAME`, `%env NAME=value`."""
    if not rest:
        return dict(os.environ)
    name, sign, value = rest.partition("=" if "=" in rest else " ")
    if not sign:
        if name not in os.environ:
            raise UsageError(f"%env: there is no variable {name}")
        return os.environ[name]
    os.environ[name.strip()] = value.strip()
    print(f"env: {name.strip()}={value.strip()}")
    return None


def seconds(amount: float) -> str:
    """A time with a fitting unit."""
    scale, unit = next((pair for pair in UNITS if amount >= pair[0]), UNITS[-1])
    return f"{amount / scale:.3g} {unit}"


def evaluate(code: str) -> Any:
    """Run code in the session; the value of an expression at its end."""
    import ast

    tree = ast.parse(code, "<magic>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<magic>", "exec"), driver.main)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<magic>", "eval"), driver.main)


def timed(code: str) -> Any:
    """`%time CODE`."""
    wall, before = time.perf_counter(), os.times()
    try:
        return evaluate(code)
    finally:
        wall, after = time.perf_counter() - wall, os.times()
        user, kernel = after.user - before.user, after.system - before.system
        total = seconds(user + kernel)
        print(f"CPU times: user {seconds(user)}, sys: {seconds(kernel)}, total: {total}")
        print(f"Wall time: {seconds(wall)}")


def time_it(rest: str, body: str | None = None) -> None:
    """`%timeit [-n LOOPS] [-r REPEATS] CODE`; in a cell, the line is the setup."""
    loops, repeats = 0, 7
    while (found := re.match(r"-([nr])\s*(\d+)\s*", rest)) is not None:
        if found[1] == "n":
            loops = int(found[2])
        else:
            repeats = max(1, int(found[2]))
        rest = rest[found.end() :]
    code, setup = (rest, "pass") if body is None else (body, rest or "pass")
    timer = timeit.Timer(code, setup, globals=driver.main)
    loops = loops or timer.autorange()[0]
    times = [total / loops for total in timer.repeat(repeats, loops)]
    mean, spread = statistics.mean(times), statistics.pstdev(times)
    print(
        f"{seconds(mean)} ± {seconds(spread)} per loop "
        f"(mean ± std. dev. of {repeats} runs, {loops:,} loops each)"
    )


def pip(rest: str) -> None:
    """`%pip install NAME`."""
    before = interpreter()
    status = run(["python3", "-m", "pip", *shlex.split(rest)])
    importlib.invalidate_caches()
    if status:
        raise UsageError(f"%pip ended with exit code {status}")
    if interpreter() != before:
        print("%pip: open a new session to import packages with native code", file=sys.stderr)


def interpreter() -> str:
    """The program that `python3` starts; installing a package with native code changes it."""
    return os.path.realpath("/usr/bin/python3")


def matplotlib(rest: str) -> None:
    """`%matplotlib inline`: figures are always shown as images."""
    if rest not in ("", "inline", "agg", "Agg"):
        raise UsageError(f"%matplotlib {rest}: there is no screen here; use %matplotlib inline")


def run_file(rest: str) -> None:
    """`%run FILE ARGUMENTS`."""
    import runpy

    words = shlex.split(rest)
    if not words:
        raise UsageError("%run needs a file")
    before = sys.argv[:]
    sys.argv[:] = words
    try:
        names = runpy.run_path(words[0], run_name="__main__")
    finally:
        sys.argv[:] = before
    driver.main.update((name, value) for name, value in names.items() if name[:2] != "__")


def who(rest: str) -> None:
    """`%who`: the names that the session has defined."""
    print("   ".join(name for name in driver.main if not name.startswith("_")))


def script(program: str) -> Callable[[str, str], None]:
    """`%%bash`: the cell is a script."""

    def run_cell(rest: str, body: str) -> None:
        status = run([program, "-c", body, program, *shlex.split(rest)])
        if status:
            raise subprocess.CalledProcessError(status, program)

    return run_cell


def writefile(rest: str, body: str) -> None:
    """`%%writefile [-a] FILE`."""
    words = shlex.split(rest)
    names = [word for word in words if word != "-a"]
    if len(names) != 1:
        raise UsageError("%%writefile needs a file")
    exists, adds = os.path.exists(names[0]), "-a" in words
    with open(names[0], "a" if adds else "w", encoding="utf-8") as file:
        file.write(body if body.endswith("\n") else body + "\n")
    print(f"{'Appending to' if adds else 'Overwriting' if exists else 'Writing'} {names[0]}")


def shown_as(mime: str) -> Callable[[str, str], None]:
    """`%%html` and the like: the cell is displayed."""
    return lambda rest, body: driver.part("display").publish({mime: body})


LINE_MAGICS: dict[str, Callable[[str], Any]] = {
    "cd": cd,
    "env": env,
    "set_env": env,
    "pwd": lambda rest: os.getcwd(),
    "time": timed,
    "timeit": time_it,
    "pip": pip,
    "matplotlib": matplotlib,
    "run": run_file,
    "who": who,
    "sx": output,
    "system": output,
    "ls": lambda rest: system(f"ls {rest}"),
    "cat": lambda rest: system(f"cat {rest}"),
    "lsmagic": lambda rest: [f"%{name}" for name in LINE_MAGICS] + [f"%%{n}" for n in CELL_MAGICS],
}
CELL_MAGICS: dict[str, Callable[[str, str], Any]] = {
    "bash": script("bash"),
    "sh": script("sh"),
    "time": lambda rest, body: timed(f"{rest}\n{body}" if rest else body),
    "timeit": time_it,
    "writefile": writefile,
    "html": shown_as("text/html"),
    "markdown": shown_as("text/markdown"),
    "latex": shown_as("text/latex"),
    "svg": shown_as("image/svg+xml"),
}
EXPANDED = {"cd", "env", "set_env", "pip", "run", "writefile"}
