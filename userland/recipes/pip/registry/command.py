"""The command `pip`.

Owns the choice between the light part of pip and the real one. Rules: the light part does what is
about the registry only; whatever else there is, or might be, is the real pip's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from .arguments import UsageError
from .requirements_files import ForRealPip

_CHANGED_BY_VARIABLES = (
    "PIP_CONSTRAINT",
    "PIP_DRY_RUN",
    "PIP_NO_DEPS",
    "PIP_PREFIX",
    "PIP_PYTHON",
    "PIP_REQUIREMENT",
    "PIP_ROOT",
    "PIP_TARGET",
)
"""Variables that change what commands do, and that only the real pip reads."""
_GENERAL = ("-q", "--quiet", "--disable-pip-version-check", "--no-input", "--no-color")


def cli() -> int:
    """Run the command of `sys.argv`; returns the exit status."""
    try:
        return run(sys.argv[1:])
    except KeyboardInterrupt:
        print("ERROR: Operation cancelled by user", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # As pip: the reader has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def run(given: list[str]) -> int:
    """Run one command."""
    try:
        command, arguments = _command(given)
        return command(arguments)
    except UsageError as error:
        print(f"\nUsage:\n  pip <command> [options]\n\n{error}", file=sys.stderr)
        return 2
    except ForRealPip:
        sys.stdout.flush()
    from . import real_pip

    return real_pip.run(given)


def _command(given: list[str]) -> tuple[Callable[[list[str]], int], list[str]]:
    """The command, and the arguments without its name. Raises `ForRealPip`."""
    if given in (["--version"], ["-V"]):
        return _print_version, []
    position = 0
    while position < len(given) and given[position] in _GENERAL:
        position += 1
    if position == len(given) or any(name in os.environ for name in _CHANGED_BY_VARIABLES):
        raise ForRealPip
    arguments = given[:position] + given[position + 1 :]
    name = given[position]
    if name in ("install", "uninstall"):
        from . import installing

        return getattr(installing, name), arguments
    if name in ("list", "freeze", "show", "check"):
        from . import listing

        return getattr(listing, "list_packages" if name == "list" else name), arguments
    raise ForRealPip


def _print_version(_: list[str]) -> int:
    import pip

    place = os.path.dirname(os.path.abspath(pip.__file__))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    print(f"pip {pip.__version__} from {place} (python {version})")
    return 0
