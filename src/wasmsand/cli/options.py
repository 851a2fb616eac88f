"""Options that several subcommands share, and the sandbox that they describe.

Rules: a file of the host is read or written only if the user names it; no variable of the host's
environment enters a sandbox. A sandbox ends with the command, unless it is on a server and the
user keeps it.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wasmsand.cli import values
from wasmsand.cli.failure import CliError, UsageError
from wasmsand.sdk.errors import FileError, SandboxError, ServerError
from wasmsand.sdk.option_table import Option, OptionKind, SandboxInterface
from wasmsand.sdk.options import OPTIONS, SandboxOptions

if TYPE_CHECKING:
    from wasmsand.sdk.network import Network
    from wasmsand.sdk.sandbox import Sandbox

URL_VARIABLE = "WASMSAND_URL"
TOKEN_VARIABLE = "WASMSAND_TOKEN"


@dataclass(frozen=True, slots=True)
class Copy:
    """A file or directory to copy, and its target."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class _Words:
    """The syntax of an option's value on the command line."""

    metavar: str
    type: Callable[[str], object]
    repeats: bool = False
    help: str = ""
    """Replaces the help of the option, which has the words of Python."""


_WORDS: Mapping[OptionKind, _Words] = {
    OptionKind.COUNT: _Words("N", values.positive_integer),
    OptionKind.VARIABLES: _Words("NAME=VALUE", values.variable, repeats=True),
    OptionKind.GUEST_DIRECTORY: _Words("DIR", values.absolute_path),
    OptionKind.HOST_DIRECTORY: _Words("DIR", str),
    OptionKind.PACKAGES: _Words(
        "NAME",
        str,
        repeats=True,
        help="Python package that can be imported from the start, with its dependencies, such as "
        "numpy or 'pandas>=3'; all means all packages of the image",
    ),
    OptionKind.NETWORK: _Words("RULE", str, repeats=True),
    OptionKind.MOUNTS: _Words(
        "HOST:GUEST[:ro|rw|overlay]",
        values.mount,
        repeats=True,
        help="show a directory of this machine in the sandbox: read-only (the default), rw to "
        "change it, or overlay to let changes end with the sandbox",
    ),
}
"""The syntax of each kind of option."""


def _flags(table: Iterable[Option]) -> list[Option]:
    return [option for option in table if SandboxInterface.COMMAND_LINE in option.interfaces]


def add_sandbox_options(parser: argparse.ArgumentParser, table: Iterable[Option] = OPTIONS) -> None:
    """Add the options of a sandbox, such as `--env` and `--fs-limit`."""
    for option in _flags(table):
        words = _WORDS[option.kind]
        if option.kind is OptionKind.NETWORK:
            add_network_options(parser, "host that the sandbox may reach", option.flag)
            continue
        is_size = option.name.endswith("_bytes")
        metavar = "SIZE" if is_size else words.metavar
        shown = " (repeatable)" if words.repeats else ""
        if not words.repeats and option.default is not None:
            default = values.shown_bytes(option.default) if is_size else option.default
            shown = f" (default: {default}{'; units are K, M and G' if is_size else ''})"
        parser.add_argument(
            *filter(None, (option.flag, option.short_flag)),
            dest=option.name,
            metavar=metavar,
            type=values.byte_count if is_size else words.type,
            action="append" if words.repeats else "store",
            default=[] if words.repeats else option.default,
            help=(words.help or option.help).replace("%", "%%") + shown,
        )


def add_network_options(
    parser: argparse.ArgumentParser, help_text: str, flag: str = "--allow-net"
) -> None:
    """Add `--allow-net` and `--deny-net`."""
    parser.add_argument(
        flag,
        dest="network",
        metavar="RULE",
        action="append",
        default=[],
        help=f"{help_text}; a rule is [METHODS ]host[:port][/path], such as api.example.com, "
        "'*.example.com:443' or 'GET example.com/docs/*' (repeatable)",
    )
    parser.add_argument(
        "--deny-net",
        dest="denied_network",
        metavar="RULE",
        action="append",
        default=[],
        help="what may not be reached although --allow-net covers it (repeatable)",
    )


def network_of(arguments: argparse.Namespace) -> Network | None:
    """The value of `--allow-net` and `--deny-net`; None if neither is given."""
    if not arguments.network and not arguments.denied_network:
        return None
    from wasmsand.sdk.network import Network

    with failures():
        return Network(allow=arguments.network, deny=arguments.denied_network)


def add_copy_in_option(parser: argparse.ArgumentParser) -> None:
    """Add `--file`."""
    parser.add_argument(
        "--file",
        metavar="HOST[:GUEST]",
        type=_copy_in,
        action="append",
        default=[],
        help="copy a file or directory of this machine into the sandbox first; GUEST is "
        "relative to the working directory and defaults to the name (repeatable)",
    )


def add_copy_options(parser: argparse.ArgumentParser) -> None:
    """Add `--file` and `--out`."""
    add_copy_in_option(parser)
    parser.add_argument(
        "--out",
        metavar="GUEST[:HOST]",
        type=_copy_out,
        action="append",
        default=[],
        help="copy a file or directory of the sandbox to this machine at the end; HOST "
        "defaults to the name, in the current directory (repeatable)",
    )


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add `--connect`."""
    parser.add_argument(
        "--connect",
        metavar="URL",
        default=os.environ.get(URL_VARIABLE) or None,
        help="use a sandbox of this server (see `wasmsand serve`) instead of one in this "
        f"process; default: ${URL_VARIABLE}",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        type=_token_in_file,
        action=_KeepToken,
        help=f"the server's token is in this file; default: ${TOKEN_VARIABLE}",
    )


def sandbox_options(arguments: argparse.Namespace) -> SandboxOptions:
    """The values of the options that `add_sandbox_options` has added, without a timeout."""
    try:
        given = {option.name: _value(option, arguments) for option in _flags(OPTIONS)}
        return SandboxOptions(timeout_ms=None, **given)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _value(option: Option, arguments: argparse.Namespace) -> Any:
    if option.kind is OptionKind.NETWORK:
        return network_of(arguments)
    given = getattr(arguments, option.name)
    is_mapping = option.kind in (OptionKind.VARIABLES, OptionKind.MOUNTS)
    return dict(given) if is_mapping else given


class _KeepToken(argparse.Action):
    """Remembers the token for `server_token`."""

    def __call__(self, parser: object, namespace: object, token: Any, *_: object) -> None:
        _given_tokens[:] = [token]


_given_tokens: list[str] = []


def _token_in_file(name: str) -> str:
    try:
        token = Path(name).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise argparse.ArgumentTypeError(f"{name}: {reason}") from None
    if not token:
        raise argparse.ArgumentTypeError(f"{name} is empty")
    return token


def server_token() -> str | None:
    """The token for a server, from a file or the environment: command lines are not secret."""
    return _given_tokens[0] if _given_tokens else os.environ.get(TOKEN_VARIABLE) or None


@contextmanager
def failures() -> Iterator[None]:
    """Turn exceptions of the sandbox or its server into one line for the user."""
    try:
        yield
    except ServerError as error:
        if error.code != "unauthorized":
            raise CliError(str(error)) from None
        given = server_token() is not None
        problem = "does not accept your token" if given else "needs a token"
        raise CliError(
            f"the server {problem}: put it into the environment variable {TOKEN_VARIABLE}, or into "
            "a file and give --token-file FILE"
        ) from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    except SandboxError as error:
        raise CliError(str(error)) from None


def copy_in(sandbox: Sandbox, copies: list[Copy]) -> None:
    """Make the copies of `--file`."""
    for copy in copies:
        try:
            sandbox.files.upload(copy.source, copy.target)
        except OSError as error:
            raise CliError(f"--file {copy.source}: {error.strerror or error}") from None
        except (FileError, ValueError) as error:
            raise CliError(f"--file {copy.source}: {error}") from None


def copy_out(sandbox: Sandbox, copies: list[Copy]) -> None:
    """Make the copies of `--out`."""
    for copy in copies:
        try:
            left_out = sandbox.files.download(copy.source, copy.target)
        except OSError as error:
            raise CliError(
                f"--out {copy.source}: {copy.target}: {error.strerror or error}"
            ) from None
        except (FileError, ValueError) as error:
            raise CliError(f"--out {copy.source}: {error}") from None
        report_left_out(left_out)


def report_left_out(names: list[str]) -> None:
    """Print the names that a copy to this machine has left out."""
    for name in names:
        print(
            f"wasmsand: not copied (special file, or link that may lead outside): {name}",
            file=sys.stderr,
        )


def _copy_in(word: str) -> Copy:
    host, _, guest = word.partition(":")
    name = Path(host).name
    if not host or not (guest or name):
        raise argparse.ArgumentTypeError(f"{word!r} is not HOST or HOST:GUEST")
    return Copy(host, guest or name)


def _copy_out(word: str) -> Copy:
    guest, _, host = word.partition(":")
    name = posixpath.basename(guest.rstrip("/"))
    if not guest or not (host or name) or name in (".", ".."):
        raise argparse.ArgumentTypeError(f"{word!r} is not GUEST or GUEST:HOST")
    return Copy(guest, host or name)
