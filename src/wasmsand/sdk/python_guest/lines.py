"""Translates lines that IPython understands and Python does not: `!command`, `%magic`, `name?`.

Rules: only code that is not valid Python gets here, so valid Python never changes. A special line
is recognised only where a statement begins, or after the `=` of an assignment: Python's tokeniser
says where that is, so strings and expressions over several lines are left alone. Line numbers stay
as they are, and the columns of a translated line are those of the line as it was written.
"""

from __future__ import annotations

import ast
import builtins
import re
import tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wasmsand.sdk.python_driver import driver

HELP = re.compile(r"\?{0,2}\s*([A-Za-z_][\w.]*)\s*\?{0,2}")
OPENING, CLOSING = "([{", ")]}"


def translated(code: str, name: str) -> ast.Module | None:
    """The syntax tree of the code; None if it has no special lines. Raises `SyntaxError`."""
    lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    result, columns = translate(lines)
    if not columns:
        return None
    tree = compile("\n".join(result), name, "exec", ast.PyCF_ONLY_AST)
    assert isinstance(tree, ast.Module)
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt) and node.lineno in columns:
            node.end_lineno = node.lineno
            node.col_offset, node.end_col_offset = columns[node.lineno]
    builtins.__dict__["__session__"] = driver.part("magics")
    return tree


def translate(lines: list[str]) -> tuple[list[str], dict[int, tuple[int, int]]]:
    """The translated lines, and for each line with a translation the columns of the original."""
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    columns: dict[int, tuple[int, int]] = {}

    def note(at: int) -> None:
        line = lines[at]
        start = len(line) - len(line.lstrip())
        columns[at + 1] = (start, len(line.encode()))

    if lines[first].startswith("%%"):
        note(first)
        name, _, rest = lines[first][2:].partition(" ")
        body = "\n".join(lines[first + 1 :])
        call = f"__session__.cell({name.strip()!r}, {rest.strip()!r}, {body!r})"
        return [""] * first + [call], columns
    result: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        start = line.lstrip()
        if start.startswith(("!", "%", "?")) or is_help(start):
            row, column = at, len(line) - len(start)
            captures = False
        else:
            end, special = extent(lines, at)
            if special is None:
                result += lines[at:end]
                at = end
                continue
            (row, column), captures = special, True
        # A backslash at the end continues a special line.
        text, end = lines[row][column:], row + 1
        while text.endswith("\\") and end < len(lines):
            text, end = text[:-1] + lines[end].lstrip(), end + 1
        note(row)
        result += lines[at:row]
        result.append(lines[row][:column] + call_of(text, captures))
        result += [""] * (end - row - 1)
        at = end
    return result, columns


def is_help(start: str) -> bool:
    """Whether the line asks for help, as in `name?`."""
    return start.rstrip().endswith("?") and HELP.fullmatch(start.rstrip()) is not None


def call_of(text: str, captures: bool) -> str:
    """The Python expression for a special line."""
    if text.startswith("!"):
        command = text.lstrip("!").strip()
        if captures or text.startswith("!!"):
            return f"__session__.output({command!r})"
        return f"__session__.system({command!r})"
    asked = HELP.fullmatch(text.strip())
    if asked is not None and "?" in text:
        return f"__session__.explain({asked[1]!r})"
    name, _, rest = text.lstrip("%").partition(" ")
    return f"__session__.magic({name.strip()!r}, {rest.strip()!r})"


def extent(lines: list[str], start: int) -> tuple[int, tuple[int, int] | None]:
    """Where the logical line ends that begins at `start`; and where `!` or `%` is, if the line is
    an assignment of a special line."""
    at = start

    def readline() -> str:
        nonlocal at
        at += 1
        return f"{lines[at - 1]}\n" if at <= len(lines) else ""

    depth, before = 0, ""
    try:
        for token in tokenize.generate_tokens(readline):
            text, row = token.string, start + token.start[0] - 1
            if token.type == tokenize.NEWLINE or (token.type == tokenize.NL and not before):
                return row + 1, None
            if token.type == tokenize.OP:
                depth += (text in OPENING) - (text in CLOSING)
                if text in "!%" and before == "=" and not depth:
                    return row + 1, (row, token.start[1])
            if token.type not in (tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT):
                before = text
    except (tokenize.TokenError, SyntaxError):
        pass  # Python will say what is wrong with it
    return start + 1, None
