"""Functions that exist twice in a program that forks: a fast form, and one that can be resumed.

Asyncify lets a program fork: its functions can save their variables and return (unwind), and later
restore them and continue after the same call (rewind). To find that call again, a function asks
before each statement what it is doing, and all its variables live through all of it: bash's loops
take a quarter longer. But a function only resumes in the two processes after a fork. So what
Asyncify made becomes `NAME__rewind`, and `NAME` is a copy of it that can be unwound but never
resumed: if the program rewinds, it calls the other form, else all questions but those after a call
have a known answer, and the optimiser removes them.

Owns this rewriting of wasm-opt's text form. Rules: a program runs the fast form only while nothing
rewinds; each call that can unwind is followed by its question in the fast form too, which is
checked by counting; a function for which that cannot be said stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

SUFFIX = "__rewind"
_GET_STATE = "(global.get $__asyncify_state)"
_SPLIT = re.compile(r"\n(?= \((?:func|export|table|elem|data|global|memory|import|type|tag|@)\b)")
_FUNCTION = re.compile(r" \(func \$(\S+)(.*)")
_PARAMETER = re.compile(r"\(param (\$\S+) ")
# "Does it unwind?", the question after each call. Asyncify's states: 0 normal, 1 unwind, 2 rewind.
_UNWINDS = re.compile(
    r"(\(i32\.(?:eq|ne)\s+)" + re.escape(_GET_STATE) + r"(\s+\(i32\.const 1\)\s+\))"
)
_MARK = "(the state)"


def functions_of_profile(text: str) -> set[str]:
    """The names in a profile of LLVM's text form; a static function has its file before a sign."""
    firsts = (part.strip("\n").partition("\n")[0] for part in text.split("\n\n"))
    return {re.split("[:;]", first)[-1] for first in firsts if first}


def doubled(plain: str, optimised: str, hot: Collection[str]) -> str:
    """The module with the functions `hot` in two forms, as text.

    Both texts are the module after Asyncify: as Asyncify wrote it, and with Asyncify's own
    optimisation, which makes saved frames a third as large.
    """
    originals = dict(_functions(plain))
    return "\n".join(_rewritten(optimised, originals, hot))


def _functions(text: str) -> Iterator[tuple[str, str]]:
    for part in _SPLIT.split(text):
        if found := _FUNCTION.match(part):
            yield found[1], part


def _rewritten(text: str, originals: dict[str, str], hot: Collection[str]) -> Iterator[str]:
    for part in _SPLIT.split(text):
        found = _FUNCTION.match(part)
        if found is None:
            yield part
            continue
        name, original = found[1], originals[found[1]]
        # wasm-opt cannot read its own text of a `delegate` in a nested block, which the optimised
        # form has.
        chosen = original if "(delegate " in part else part
        questions = len(_UNWINDS.findall(original))
        if name not in hot or not questions or questions != len(_UNWINDS.findall(chosen)):
            yield chosen
            continue
        yield _fast(name, found[2], chosen)
        yield chosen.replace(f"(func ${name}", f"(func ${name}{SUFFIX}", 1)


def _fast(name: str, head: str, part: str) -> str:
    """The form that is never resumed."""
    lines = part.split("\n")
    locals_end = next(at for at, line in enumerate(lines[1:], 1) if "(local " not in line[:9])
    arguments = " ".join(f"(local.get {parameter})" for parameter in _PARAMETER.findall(head))
    resume = f"(call ${name}{SUFFIX} {arguments})"
    resume = f"(return {resume})" if "(result " in head else f"{resume} (return)"
    body = _UNWINDS.sub(rf"\1{_MARK}\2", "\n".join(lines[locals_end:]))
    body = body.replace(_GET_STATE, "(i32.const 0)").replace(_MARK, _GET_STATE)
    entry = f"  (if (i32.eq {_GET_STATE} (i32.const 2)) (then {resume}))"
    return "\n".join([*lines[:locals_end], entry, body])
