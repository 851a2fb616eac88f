"""Gives C that f2c wrote the interface that callers of LAPACK use.

f2c makes subroutines return an int and adds the length of each string argument to the end of the
argument lists. The BLAS, numpy and scipy call subroutines without a result and pass no lengths. In
WebAssembly a call must fit its function exactly.

Owns the rewriting of these two things. Rules: definitions, declarations and calls are rewritten
alike; the few functions that need the lengths keep them.
"""

from __future__ import annotations

import re

_WITH_LENGTHS = frozenset(
    [
        # Of the runtime of f2c.
        *("s_copy", "s_cmp", "s_cat", "i_len", "i_indx"),
        # The BLAS has it, with a length.
        "xerbla_",
        # Called by LAPACK only.
        *("ilaenv_", "iparmq_", "lsamen_"),
    ]
)
_SUBROUTINE = re.compile(r"/\* Subroutine \*/ int\b")
_TOKEN = re.compile(r"/\*.*?\*/|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\w+|\s+|.", re.DOTALL)
_LENGTH = re.compile(r"\s*(\(\s*ftnlen\s*\)|ftnlen\b)")


def rewritten(code: str) -> str:
    """The C code with subroutines that return nothing and lists without lengths."""
    return _without_lengths(_SUBROUTINE.sub("void", code).replace("return 0;", "return;"))


def _without_lengths(code: str) -> str:
    output: list[str] = []
    # For each open parenthesis: whose list it is, where it began, and where its arguments began.
    lists: list[tuple[str, list[int]]] = []
    name = ""
    for found in _TOKEN.finditer(code):
        token = found[0]
        if token == "(":
            output.append(token)
            lists.append((name, [len(output)]))
            name = ""
        elif token == "," and lists:
            lists[-1][1].append(len(output))
            output.append(token)
        elif token == ")" and lists:
            function, starts = lists.pop()
            if function and function not in _WITH_LENGTHS:
                _drop_lengths(output, starts)
            output.append(token)
            name = ""
        else:
            output.append(token)
            if not token.isspace() and not token.startswith("/*"):
                name = token if token[0].isalpha() or token[0] == "_" else ""
    return "".join(output)


def _drop_lengths(output: list[str], starts: list[int]) -> None:
    """Remove the arguments at the end of a list that are lengths of strings."""
    for start in reversed(starts[1:]):
        if not _LENGTH.match("".join(output[start + 1 :])):
            return
        del output[start:]
