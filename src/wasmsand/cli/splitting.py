"""Finds where the options of wasmsand end and the user's command begins.

Owns `split_at_command`. Rules: the command begins at the first word that is not an option of
wasmsand, nor the value of one, so that `wasmsand run ls -la /tmp` needs no `--`. A `--` before the
command is accepted.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence


def split_at_command(
    parser: argparse.ArgumentParser, words: Sequence[str], positionals: int = 0
) -> tuple[list[str], list[str]]:
    """The words for `parser`, and those of the command. `parser` takes so many positional
    arguments before the command."""
    takes_value = {
        word: action.nargs != 0 for action in parser._actions for word in action.option_strings
    }
    at = 0
    while at < len(words):
        word = words[at]
        name, equals, _ = word.partition("=")
        if word == "--":
            return list(words[:at]), list(words[at + 1 :])
        if name in takes_value and word.startswith("--"):
            at += 1 if equals or not takes_value[name] else 2
        elif word in takes_value:
            at += 2 if takes_value[word] else 1
        elif word[:2] in takes_value and word[:2] != "--" and takes_value[word[:2]]:
            at += 1  # -pNAME
        elif positionals and not word.startswith("-"):
            positionals -= 1
            at += 1
        else:
            break
    return list(words[:at]), list(words[at:])


def refuse_options(parser: argparse.ArgumentParser, command: Sequence[str]) -> None:
    """End with a usage error if the first word of the command is an unknown option."""
    if command and command[0].startswith("-") and command[0] != "-":
        name = command[0].partition("=")[0]
        parser.error(f"unknown option {name}{suggestion(name, options_of(parser))}")


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """All options of `parser`."""
    return [word for action in parser._actions for word in action.option_strings]


def suggestion(word: str, known: Sequence[str]) -> str:
    """`; did you mean ...?` if a known word is similar, else nothing."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
