"""Generated scripts: pipelines over generated text, and expansions of generated words.

Owns the grammar; the stages of pipelines are in stages.txt. Rules: a seed always gives the same
script; the lines of a script are independent, so that one difference does not hide the next;
nothing depends on time, on the machine, on an unspecified order, or on whether a writer notices
that its reader has closed the pipe.
"""

from __future__ import annotations

import random
import re
import shlex
from pathlib import Path
from typing import Final

WORDS: Final = (
    *("alpha", "Beta", "gamma", "delta", "x", "10", "9", "-3", "2.5", "1e3", "007", "a-b"),
    *("É", "naïve", "日本", "ß", "tab\there", "", " lead", "UPPER", "key=value", "a,b", "z_9"),
)
_SEPARATORS: Final = (",", " ", "\t", ":", "|")
_EXPRESSIONS: Final = ("a", "[0-9]", "^.", ".$", "^$", "[[:upper:]]", "e\\?", "[aeiou]*")
LINES_PER_SCRIPT: Final = 25
NEEDS: Final = frozenset({"grep", "sed", "gawk"})
"""The recipes whose programs the grammar uses, besides bash and coreutils."""


def _read_stages() -> list[list[str]]:
    """The groups of stages.txt."""
    text = Path(__file__).with_name("stages.txt").read_text("utf-8")
    groups = [group.splitlines() for group in text.split("\n\n")]
    return [group for group in groups if not group[0].startswith("#")]


_STAGES: Final = _read_stages()


def script(seed: int) -> str:
    """A script whose kind and content depend on the seed."""
    source = random.Random(seed)
    kind = _pipelines if seed % 3 else _expansions
    return kind(source)


def _pipelines(source: random.Random) -> str:
    separator = source.choice(_SEPARATORS)
    rows = [
        separator.join(source.choice(WORDS) for _ in range(source.randint(0, 5)))
        for _ in range(source.randint(1, 40))
    ]
    text = "\n".join(rows) + source.choice(("\n", "\n", ""))
    lines = [
        f"printf %s {shlex.quote(text)} > data",
        "sort data > sorted",
        f"S={shlex.quote(separator)}",
    ]
    for _ in range(LINES_PER_SCRIPT):
        stages = [_stage(source) for _ in range(source.choice((1, 1, 2, 2, 3, 4)))]
        stages[0] += f" < {source.choice(('data', 'data', 'sorted'))}"
        pipeline = " | ".join(stages)
        # Error messages of several programs come in any order, or not at all.
        lines.append(pipeline if len(stages) == 1 else f"{{ {pipeline}; }} 2> /dev/null")
        lines.append('echo "-- $?"')
    return "\n".join(lines) + "\n"


def _stage(source: random.Random) -> str:
    """A command, with its placeholders filled in."""
    word = source.choice(WORDS)
    values = {
        "n": str(source.randint(1, 9)),
        "m": str(source.randint(1, 5)),
        "w": shlex.quote(word),
        "c": shlex.quote((word or "-")[0]),
        "r": source.choice(_EXPRESSIONS),
    }
    template = source.choice(source.choice(_STAGES))
    return re.sub("@([nmwcr])", lambda found: values[found[1]], template)


def _expansions(source: random.Random) -> str:
    lines = []
    for _ in range(LINES_PER_SCRIPT):
        word = "".join(source.choice(WORDS) for _ in range(source.randint(1, 3)))
        lines.append(f'v={shlex.quote(word)}; {source.choice(_USES)(source)}; echo "-- $?"')
    return "\n".join(lines) + "\n"


def _arithmetic(source: random.Random, depth: int = 3) -> str:
    if depth == 0 or source.random() < 0.2:
        return source.choice(("0", "1", "7", "-5", "0x1f", "010", "2#101", "99999999999", "x", "y"))
    left, right = _arithmetic(source, depth - 1), _arithmetic(source, depth - 1)
    operator = source.choice(
        ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "&&", "||", "<", "==", "!=", ",")
    )
    return source.choice((f"({left} {operator} {right})", f"({left} ? {right} : x)", f"(~{left})"))


def _print_arithmetic(source: random.Random) -> str:
    return f"x=3 y=-4; (echo $(({_arithmetic(source)})))"


def _print_expansion(source: random.Random) -> str:
    pattern = source.choice(("a", "?", "*a", "[a-m]*", "*[0-9]", "+", "é", "日"))
    number, length = source.randint(-6, 8), source.randint(-3, 5)
    form = source.choice(
        (
            f"${{v#{pattern}}}",
            f"${{v##{pattern}}}",
            f"${{v%{pattern}}}",
            f"${{v%%{pattern}}}",
            f"${{v/{pattern}/<&>}}",
            f"${{v//{pattern}/-}}",
            f"${{v: {number}}}",
            f"${{v: {number}:{length}}}",
            "${v^}",
            "${v^^[a-f]}",
            "${v,,}",
            "${#v}",
            "${v@Q}",
            "${v:-empty}",
            "${v:+set}",
        )
    )
    return f'(printf "[%s]\\n" {source.choice((form, chr(34) + form + chr(34)))})'


def _print_format(source: random.Random) -> str:
    flags = "".join(source.sample("-+ 0#", source.randint(0, 2)))
    width = source.choice(("", str(source.randint(1, 12))))
    precision = source.choice(("", f".{source.randint(0, 6)}"))
    letter = source.choice("dixXosqbcefgEG")
    program = source.choice(("printf", "env printf"))
    value = source.choice(('"$v"', "42", "-7", "3.14159", "1e10", "0x10", "''"))
    return f"{program} '%{flags}{width}{precision}{letter}|\\n' {value} 2> /dev/null"


def _test_word(source: random.Random) -> str:
    operator = source.choice(("==", "!=", "<", ">", "=~"))
    other = source.choice(("a*", "?", "[0-9]*", "alpha", ".", "^[a-z]+$", "日.*"))
    return f'[[ $v {operator} {other} ]] && echo yes "${{BASH_REMATCH[@]}}"'


def _split_word(source: random.Random) -> str:
    return f"IFS={shlex.quote(source.choice(_SEPARATORS))}; set -f; printf '<%s>' $v; unset IFS"


_USES: Final = (_print_arithmetic, _print_expansion, _print_format, _test_word, _split_word)
