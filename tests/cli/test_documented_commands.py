"""Every `wasmsand` command that a document or a help text names exists, with its options.

The first hour (`tests/first_hour`) runs the commands of some pages; this test looks at those of all
pages, also at those that need a network, a terminal or a cluster.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from wasmsand.cli import make_parser
from wasmsand.cli.completion import commands_of
from wasmsand.cli.delegated import MODULES

pytestmark = pytest.mark.no_userland

_CODE = re.compile(
    r"^```\w+\n.*?^```$|^```\n(.*?)^```$|`([^`\n]+(?:\n[^`\n]+)?)`", re.DOTALL | re.MULTILINE
)
_COMMAND = re.compile(r"(?:^|[;&|(]\s*|\$\s)(?:[A-Z_]+=\S+\s+)*(?:\S*/)?wasmsand ([^()]*)")
_PROGRAM_FOLLOWS = {"run", "shell", "python", "load"}
"""After the first word that is no option, everything belongs to a program in the sandbox."""


def printed(text: str) -> Iterator[str]:
    """What follows `wasmsand` in the code of a text."""
    for block, inline in _CODE.findall(text):
        lines = block.splitlines() if block else [" ".join(inline.split())]
        for line in lines:
            yield from commands_in(line.removeprefix("$ "))


def commands_in(line: str) -> list[str]:
    """Also those in `$(...)`."""
    return [found for found in _COMMAND.findall(line.strip()) if found.strip()]


def words_of(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:  # a quotation that ends on another line
        return command.split()


def mistakes(command: str, parsers: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    """What is wrong with a command."""
    name, *words = words_of(command)
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        return  # a placeholder
    if name not in parsers:
        yield f"there is no command {name}"
        return
    actions = parsers[name]._option_string_actions
    rest = iter(words)
    for word in rest:
        option, equals, _ = word.partition("=")
        if word in ("--", "|", ";", "&&", ">", "<"):
            return
        if not option.startswith("--"):
            if name in _PROGRAM_FOLLOWS and not word.startswith("-"):
                return
            continue
        if option.rstrip(",.)") not in actions:
            yield f"wasmsand {name} has no option {option}"
        elif not equals and actions[option.rstrip(",.)")].nargs is None:
            next(rest, None)  # its value


@pytest.fixture(scope="module")
def parsers() -> dict[str, argparse.ArgumentParser]:
    (subcommands,) = [
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    found: dict[str, argparse.ArgumentParser] = subcommands.choices
    return {name: parser for name, parser in found.items() if name not in (*MODULES, "fleet")}


def test_commands_of_documents_exist(
    repository: Path, parsers: dict[str, argparse.ArgumentParser]
) -> None:
    others = {*MODULES, "fleet"}
    wrong, count = [], 0
    pages = [repository / "README.md", *sorted((repository / "docs").rglob("*.md"))]
    for page in pages:
        for command in printed(page.read_text(encoding="utf-8")):
            if command.split()[0] in others:  # parsed elsewhere
                continue
            count += 1
            wrong += [
                f"{page.relative_to(repository)}: wasmsand {command}: {mistake}"
                for mistake in mistakes(command, parsers)
            ]
    assert not wrong
    assert count > 100


def test_commands_of_help_texts_exist(parsers: dict[str, argparse.ArgumentParser]) -> None:
    wrong = []
    for name, command in commands_of(make_parser()).items():
        for line in (command.examples or "").splitlines():
            wrong += [
                f"{name}: {line}: {mistake}"
                for found in commands_in(line)
                if found.split()[0] in parsers
                for mistake in mistakes(found, parsers)
            ]
    assert not wrong


@pytest.mark.parametrize(
    ("command", "mistake"),
    [
        ("runs ls", "there is no command runs"),
        ("run --max-output 64K ls", "wasmsand run has no option --max-output"),
        ("run --timeout 5 ls --max-output", None),
        ("mcp --project . --nonsense", "wasmsand mcp has no option --nonsense"),
    ],
)
def test_a_mistake_is_found(
    parsers: dict[str, argparse.ArgumentParser], command: str, mistake: str | None
) -> None:
    assert list(mistakes(command, parsers)) == ([] if mistake is None else [mistake])


def test_options_that_the_guide_names_exist(
    repository: Path, parsers: dict[str, argparse.ArgumentParser]
) -> None:
    """Also those without a command, such as `--memory-limit 1G --fs-limit 512M`."""
    text = (repository / "docs/guides/cli.md").read_text(encoding="utf-8")
    known = {option for parser in parsers.values() for option in parser._option_string_actions}
    named = {
        option
        for _, inline in _CODE.findall(text)
        for option in re.findall(r"(?<!\S)--[a-z-]+", inline)
    }
    assert named <= known
    assert len(named) > 10
