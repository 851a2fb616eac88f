"""`SandboxOptions`: all options of a sandbox, as one value.

Owns the options: a field here is a row of the table `OPTIONS`. JSON-RPC, HTTP, the command line
and docs/reference/options.md are made from the table, and a test compares the constructor of
`Sandbox` with it. Rules: default, bounds, help and interfaces of an option are defined only here
(the numbers of limits in `wasmsand.kernel.limits`); every options object is frozen and valid; its
values are plain, so that it can be sent to another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from wasmsand.kernel.limits import Limits
from wasmsand.sdk.option_table import Option, OptionKind, SandboxInterface

if TYPE_CHECKING:
    from wasmsand.sdk.mounts import Mount
    from wasmsand.sdk.network import Network

HOME: Final = "/home/user"
Isolation = Literal["none", "process"]
Mode = Literal["simple", "v86"]
_Value = TypeVar("_Value")
_DEFAULT: Final = Limits()
_RPC, _HTTP = SandboxInterface.JSON_RPC, SandboxInterface.HTTP
_LINE, _COMMAND_LINE = SandboxInterface.LINE, SandboxInterface.COMMAND_LINE


def _option(
    kind: OptionKind,
    default: _Value,
    help_text: str,
    *interfaces: SandboxInterface,
    flag: str = "",
    short_flag: str = "",
    is_below_seam: bool = False,
    is_limit: bool = False,
) -> _Value:
    """A field of `SandboxOptions`, with the rest of its row as metadata."""
    row = {
        "kind": kind,
        "default": default,
        "help": help_text,
        "interfaces": frozenset(interfaces),
        "flag": flag,
        "short_flag": short_flag,
        "is_below_seam": is_below_seam or is_limit,
        "is_limit": is_limit,
    }
    if isinstance(default, dict):
        # Leave it out of the repr: values are often secret, and reprs end up in logs.
        return cast("_Value", field(default_factory=dict, repr=False, metadata=row))
    return field(default=default, metadata=row)


def _limit(default: int, help_text: str, *interfaces: SandboxInterface, flag: str = "") -> int:
    """A field that is also a field of `Limits`."""
    return _option(
        OptionKind.COUNT, default, help_text, _RPC, _HTTP, *interfaces, flag=flag, is_limit=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """The options of a sandbox. `Sandbox` describes each option, and creates this object.

    Example:
        sandbox.options.timeout_ms
    """

    timeout_ms: float | None = _option(
        OptionKind.MILLISECONDS,
        30_000,
        "maximum wall-clock time of one command; None for no limit",
        _RPC,
        _HTTP,
    )
    fs_limit_bytes: int = _limit(
        _DEFAULT.fs_limit_bytes,
        "maximum total size of the files that the sandbox writes",
        _COMMAND_LINE,
        flag="--fs-limit",
    )
    max_inodes: int = _limit(_DEFAULT.max_inodes, "maximum number of files, directories and links")
    memory_limit_bytes: int = _limit(
        _DEFAULT.memory_limit_bytes,
        "maximum memory of all processes together, with the objects that the host keeps for them",
        _COMMAND_LINE,
        _LINE,
        flag="--memory-limit",
    )
    max_processes: int = _limit(_DEFAULT.max_processes, "maximum number of processes")
    max_open_files: int = _limit(
        _DEFAULT.max_open_files, "maximum number of open files per process"
    )
    max_output_bytes: int = _limit(
        _DEFAULT.max_output_bytes,
        "maximum captured output of one command, for stdout and stderr each",
    )
    env: Mapping[str, str] = _option(
        OptionKind.VARIABLES,
        {},
        "environment variables, added to the built-in ones",
        _RPC,
        _HTTP,
        _COMMAND_LINE,
        flag="--env",
    )
    cwd: str = _option(
        OptionKind.GUEST_DIRECTORY,
        HOME,
        "directory in which commands and relative paths start; created if it does not exist",
        _RPC,
        _HTTP,
        _COMMAND_LINE,
        flag="--cwd",
    )
    wasm_dir: str | None = _option(
        OptionKind.HOST_DIRECTORY,
        None,
        "directory of this machine whose `*.wasm` files, programs for WASI preview 1, become "
        "commands of the sandbox, named after the files (`true-cmd.wasm` is `true`)",
        _RPC,
        _COMMAND_LINE,
        flag="--wasm-dir",
        is_below_seam=True,
    )

    packages: Sequence[str] = _option(
        OptionKind.PACKAGES,
        (),
        "Python packages that can be imported from the start, with their dependencies, such as "
        '`["numpy", "pandas>=3"]`; `"all"` for all packages of the image',
        _RPC,
        _HTTP,
        _COMMAND_LINE,
        flag="--package",
        short_flag="-p",
        is_below_seam=True,
    )

    network: Network | None = _option(  # noqa: RUF009 - as the others; the default is None
        OptionKind.NETWORK,
        None,
        "what the sandbox may reach on the network, as a `Network` or a list of rules to allow "
        'such as `["api.example.com:443", "*.wikipedia.org"]`; None for nothing',
        _RPC,
        _HTTP,
        _COMMAND_LINE,
        flag="--allow-net",
        is_below_seam=True,
    )

    mounts: Mapping[str, Mount] = _option(
        OptionKind.MOUNTS,
        {},
        "directories of this machine in the sandbox, by path: a directory to be read, or a `Mount` "
        'such as `Mount(".", mode="overlay")`',
        _RPC,
        _COMMAND_LINE,
        flag="--mount",
        is_below_seam=True,
    )

    def __post_init__(self) -> None:
        put = object.__setattr__
        for option in SETTINGS:
            put(self, option.name, option.check(getattr(self, option.name)))

    def limits(self) -> Limits:
        """The limits for the kernel."""
        return Limits(
            **{option.name: getattr(self, option.name) for option in SETTINGS if option.is_limit}
        )


def _rows() -> tuple[Option, ...]:
    return tuple(
        Option(name=row.name, **cast("Mapping[str, Any]", row.metadata))
        for row in fields(SandboxOptions)
    )


SETTINGS: Final = _rows()
"""The options that are fields of `SandboxOptions`."""
ISOLATION: Final = Option(
    "isolation",
    OptionKind.ISOLATION,
    "none",
    '`"none"` runs the sandbox in this process, `"process"` in a separate one, with the same API',
)
MODE: Final = Option(
    "mode",
    OptionKind.MODE,
    "simple",
    '`"simple"` runs programs compiled to WebAssembly, `"v86"` a whole Linux for i386 in an '
    "emulator (`wasmsand build v86`)",
)
OPTIONS: Final = (*SETTINGS, ISOLATION, MODE)
"""The table: every option of a sandbox."""
