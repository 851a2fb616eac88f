"""`wasmsand completion`: prints a script for tab completion in a shell.

Rules: all words come from the parser, so none can be forgotten; the printed script is static,
so a TAB does not start Python.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

HELP = "print a tab completion script for bash, zsh or fish"
DESCRIPTION = "Print a tab completion script for a shell."
EXAMPLES = """\
examples, one line for your shell:
  echo 'eval "$(wasmsand completion bash)"' >> ~/.bashrc
  echo 'eval "$(wasmsand completion zsh)"' >> ~/.zshrc        after compinit
  wasmsand completion fish > ~/.config/fish/completions/wasmsand.fish
"""


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand: its help, its options with their help, its words and its examples."""

    help: str
    options: Mapping[str, str]
    words: Sequence[str]
    examples: str | None


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument("shell", choices=sorted(_SCRIPTS))


def execute(arguments: argparse.Namespace) -> int:
    """Print the script."""
    from wasmsand.cli import make_parser

    sys.stdout.write(_SCRIPTS[arguments.shell](commands_of(make_parser())))
    return 0


def commands_of(parser: argparse.ArgumentParser) -> dict[str, Command]:
    """The subcommands of `parser`."""
    found: dict[str, Command] = {}
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, subparser in action.choices.items():
            found[name] = Command(
                helps.get(name, ""),
                _options_of(subparser),
                _words_of(subparser),
                subparser.epilog,
            )
    return found


def _options_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    formatter = parser._get_formatter()
    return {
        word: formatter._expand_help(action) if action.help else ""
        for action in parser._actions
        for word in action.option_strings
    }


def _words_of(parser: argparse.ArgumentParser) -> list[str]:
    """The words of which an argument has to be one."""
    positional = [action for action in parser._actions if not action.option_strings]
    return [str(word) for action in positional for word in action.choices or ()]


def _bash(commands: Mapping[str, Command]) -> str:
    cases = "".join(
        f"        {name}) words='{' '.join(command.options)}' "
        f"arguments='{' '.join(command.words)}' ;;\n"
        for name, command in commands.items()
    )
    return f"""\
_wasmsand() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words arguments
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{" ".join(commands)} --help --version' -- "$word"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}        *) return ;;
    esac
    case $word in
        -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
        *) COMPREPLY=($(compgen -W "$arguments" -- "$word")) ;;
    esac
}}
complete -o default -F _wasmsand wasmsand
"""


def _zsh(commands: Mapping[str, Command]) -> str:
    names = "\n".join(
        f"        {_quoted(f'{name}:{command.help}')}" for name, command in commands.items()
    )
    cases = "".join(
        f"        {name}) _arguments -s {_zsh_options(command)} {_zsh_words(command)} ;;\n"
        for name, command in commands.items()
    )
    return f"""\
_wasmsand() {{
    local -a commands=(
{names}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local name=$words[2]
    shift words
    (( CURRENT-- ))
    case $name in
{cases}        *) _files ;;
    esac
}}
compdef _wasmsand wasmsand
"""


def _zsh_words(command: Command) -> str:
    return f"'1:word:({' '.join(command.words)})'" if command.words else "'*:file:_files'"


def _zsh_options(command: Command) -> str:
    return " ".join(
        _quoted(f"*{word}[{text.replace('[', '(').replace(']', ')').replace(':', ',')}]")
        for word, text in command.options.items()
    )


def _fish(commands: Mapping[str, Command]) -> str:
    lines = ["complete -c wasmsand -n __fish_use_subcommand -l version -d 'show the version'"]
    for name, command in commands.items():
        lines.append(
            f"complete -c wasmsand -n __fish_use_subcommand -f -a {name} -d {_quoted(command.help)}"
        )
        if command.words:
            lines.append(
                f"complete -c wasmsand -n '__fish_seen_subcommand_from {name}' -f "
                f"-a {_quoted(' '.join(command.words))}"
            )
        for word, text in command.options.items():
            kind = "-l" if word.startswith("--") else "-s"
            lines.append(
                f"complete -c wasmsand -n '__fish_seen_subcommand_from {name}' "
                f"{kind} {word.lstrip('-')} -d {_quoted(text)}"
            )
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """`text` as one word, quoted so that all three shells understand it."""
    return "'" + text.replace("\\", "").replace("'", "") + "'"


_SCRIPTS: Mapping[str, Callable[[Mapping[str, Command]], str]] = {
    "bash": _bash,
    "fish": _fish,
    "zsh": _zsh,
}
