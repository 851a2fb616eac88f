"""Turns the Fortran 90 that LAPACK uses into Fortran 77, which is all that f2c reads.

Owns the rewriting of statements. Rules: a statement that needs no change keeps its words; a
construct that is not handled here is left for f2c, which refuses it, so that nothing is translated
by a guess; the result depends on the text and the routine's name only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, floor

_FIRST_LABEL = 90000
"""No routine of LAPACK has labels as high."""
_LINE = 66
_DECLARATION = re.compile(r"(?P<type>[^':=]+?)(?P<attributes>(,[^':]+)?)::(?P<names>.*)", re.DOTALL)
_DO = re.compile(r"DO\s*(?P<label>\d+)?\s*,?\s*(?P<rest>\w+\s*=.*|WHILE\s*\(.*|)", re.DOTALL)
_END_DO = re.compile(r"END\s*DO")
_JUMP = re.compile(r"(?P<condition>IF\s*\(.*\)\s*)?(?P<kind>EXIT|CYCLE)", re.DOTALL)
_SECTION = re.compile(r"(?P<array>\w+)\s*\((?P<first>\d+):(?P<last>\d+)\)\s*=\s*0")
_MAXLOC = re.compile(r"MAXLOC\(\s*(\w+)\(\s*(\S+?)\s*:\s*(\S+?)\s*\)\s*,\s*1\s*\)")
_HUGE = {"s": "3.40282347E+38", "d": "1.7976931348623157D+308"}
_OPERATORS = {"==": ".EQ.", "/=": ".NE.", ">=": ".GE.", "<=": ".LE.", ">": ".GT.", "<": ".LT."}


@dataclass(frozen=True)
class Statement:
    label: str
    text: str


@dataclass
class _Loop:
    label: str
    """The label of its last statement; empty if it ends with END DO."""
    after_body: str = ""
    after_loop: str = ""


@dataclass
class _Routine:
    """What is rewritten differently from routine to routine."""

    precision: str
    """`s` or `d`."""
    loops: list[_Loop] = field(default_factory=list)
    next_label: int = _FIRST_LABEL

    def label(self) -> str:
        self.next_label += 1
        return str(self.next_label)


def rewritten(text: str, routine: str, free_form: bool) -> str:
    """The Fortran 77 of a source file in free or fixed form."""
    state = _Routine("s" if routine[0] in "sc" else "d")
    statements = _free_statements(text) if free_form else _fixed_statements(text)
    lines: list[str] = []
    for statement in statements:
        if statement.text.strip():
            for one in _loops(_simplified(statement, state), state):
                lines += _fixed_lines(one)
    return "\n".join(lines) + "\n"


# Reading and writing.


def _fixed_statements(text: str) -> Iterator[Statement]:
    label, words = "", ""
    for line in text.expandtabs().splitlines():
        if not line.strip() or line[0] in "*cC!":
            continue
        code = _without_comment(line)
        if code[5:6].strip() and not code[:5].strip():
            words += code[6:].ljust(_LINE) if words.count("'") % 2 else code[6:]
            continue
        yield Statement(label, words)
        label, words = code[:5].strip(), code[6:]
    yield Statement(label, words)


def _free_statements(text: str) -> Iterator[Statement]:
    words = ""
    for line in text.splitlines():
        code = _without_comment(line).strip()
        words += code.removesuffix("&")
        if not code.endswith("&"):
            yield Statement("", words)
            words = ""


def _without_comment(line: str) -> str:
    quoted = False
    for place, letter in enumerate(line):
        if letter == "'":
            quoted = not quoted
        elif letter == "!" and not quoted:
            return line[:place]
    return line


def _fixed_lines(statement: Statement) -> Iterator[str]:
    text = statement.text.strip()
    pieces = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    for number, piece in enumerate(pieces):
        yield f"     ${piece}" if number else f"{statement.label:<5} {piece}"


# Rewriting.


def _simplified(statement: Statement, state: _Routine) -> list[Statement]:
    """Everything that can be rewritten without knowing the loops around it."""
    text = statement.text.strip()
    text = re.sub(r"^RECURSIVE\s+", "", text, flags=re.IGNORECASE)
    if found := _DECLARATION.fullmatch(text):
        return [Statement("", line) for line in _declarations(found)]
    if re.match(r"INTRINSIC\b", text):
        text = re.sub(r",\s*(HUGE|MAXLOC)\b", "", text)
    text = re.sub(r"\bHUGE\s*\(\s*\w+\s*\)", _HUGE[state.precision], text)
    # An undeclared name that begins with I is that of an integer function.
    text = _MAXLOC.sub(rf"I{state.precision.upper()}MXLC( \3-\2+1, \1( \2 ) )", text)
    if state.precision == "d":
        text = re.sub(r"\bAIMAG\b", "DIMAG", text)
    if found := _SECTION.fullmatch(text):
        places = range(int(found["first"]), int(found["last"]) + 1)
        return [Statement("", f"{found['array']}( {place} ) = 0") for place in places]
    return [Statement(statement.label, text)]


def _declarations(found: re.Match[str]) -> Iterator[str]:
    kind, names = found["type"].strip(), found["names"].strip()
    attributes = found["attributes"].upper()
    if "PARAMETER" in attributes:
        yield f"{kind} " + ", ".join(re.findall(r"(\w+)\s*=", names))
        yield f"PARAMETER ( {names} )"
        return
    yield f"{kind} {names}"
    if "EXTERNAL" in attributes:
        yield f"EXTERNAL {names}"


def _loops(statements: list[Statement], state: _Routine) -> Iterator[Statement]:
    """Replace EXIT and CYCLE by jumps to labels at the end of their loops."""
    for statement in statements:
        text, loops = statement.text, state.loops
        if found := _DO.fullmatch(text):
            loops.append(_Loop(found["label"] or ""))
        elif (found := _JUMP.fullmatch(text)) and loops:
            text = f"{found['condition'] or ''}GO TO {_target(found['kind'], loops[-1], state)}"
        elif _END_DO.fullmatch(text) and loops:
            loop = loops.pop()
            if loop.after_body:
                yield Statement(loop.after_body, "CONTINUE")
            yield Statement(statement.label, text)
            if loop.after_loop:
                yield Statement(loop.after_loop, "CONTINUE")
            continue
        yield Statement(statement.label, text)
        while loops and loops[-1].label and loops[-1].label == statement.label:
            if (loop := loops.pop()).after_loop:
                yield Statement(loop.after_loop, "CONTINUE")


def _target(kind: str, loop: _Loop, state: _Routine) -> str:
    if kind == "EXIT":
        loop.after_loop = loop.after_loop or state.label()
        return loop.after_loop
    if loop.label:
        return loop.label
    loop.after_body = loop.after_body or state.label()
    return loop.after_body


# The few files in free form.


def from_free_form(text: str, routine: str) -> str:
    """A routine in free form that uses LAPACK's module of constants."""
    double = routine[0] in "dz"
    code = "\n".join(_without_comment(line) for line in text.splitlines())
    code = code.replace("&\n", "")
    code = re.sub(r"^\s*use\s+LA_XISNAN.*$", "", code, flags=re.MULTILINE | re.IGNORECASE)
    code = re.sub(
        r"^\s*use\s+LA_CONSTANTS\s*,\s*only\s*:(?P<names>.*)$",
        lambda found: _constants(found["names"], double),
        code,
        flags=re.MULTILINE | re.IGNORECASE,
    )
    code = re.sub(r"\breal\(wp\)(?=\s+\w|\s*::)", _KINDS["real"][double], code)
    code = re.sub(r"\bcomplex\(wp\)(?=\s+\w|\s*::)", _KINDS["complex"][double], code)
    code = re.sub(r"==|/=|>=|<=|(?<!=)>|<", lambda found: _OPERATORS[found[0]], code)
    code = re.sub(r"\bLA_ISNAN\((\w+)\)", r"(\1.NE.\1)", code)
    code = re.sub(r"^\s*intrinsic\b.*$", "", code, flags=re.MULTILINE | re.IGNORECASE)
    code = re.sub(r"\bend subroutine\b", "end", code, flags=re.IGNORECASE)
    if double:
        for name, own in (("real", "dble"), ("aimag", "dimag"), ("conjg", "dconjg")):
            code = re.sub(rf"\b{name}\(", f"{own}(", code)
    return rewritten(code.upper(), routine, free_form=True)


_KINDS = {"real": ("REAL", "DOUBLE PRECISION"), "complex": ("COMPLEX", "COMPLEX*16")}


def _constants(names: str, double: bool) -> str:
    """Declarations of the constants `local=>name`, or just `name`, that the routine uses."""
    lines = []
    for item in names.split(","):
        local, _, renamed = (part.strip() for part in item.partition("=>"))
        name = renamed or local
        if local != "wp":
            complex_kind = name == ("zzero" if double else "czero")
            kind = _KINDS["complex" if complex_kind else "real"][double]
            value = "(0.0,0.0)" if complex_kind else _value(name[1:], double)
            lines += [f"{kind} {local}", f"parameter ( {local} = {value} )"]
    return "\n".join(lines)


def _value(name: str, double: bool) -> str:
    """A constant of LAPACK's module, from the parameters of the floating-point format."""
    digits, least, greatest = (53, -1021, 1024) if double else (24, -125, 128)
    simple = {"zero": 0.0, "half": 0.5, "one": 1.0, "two": 2.0}
    safe = max(least - 1, 1 - greatest)
    powers = {
        "safmin": safe,
        "safmax": -safe,
        "tsml": ceil((least - 1) / 2),
        "tbig": floor((greatest - digits + 1) / 2),
        "ssml": -floor((least - digits) / 2),
        "sbig": -ceil((greatest + digits - 1) / 2),
    }
    value = simple[name] if name in simple else 2.0 ** powers[name]
    return f"{value:.17e}".replace("e", "D" if double else "E")
