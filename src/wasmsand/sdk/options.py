"""`SandboxOptions`: everything that a sandbox is made from, as one value.

Owns the options and their defaults (the numbers are those of `wasmsand.kernel.limits`).
Rules: frozen and checked: an options object that exists is valid; plain values only, so that
it can be sent to another process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from wasmsand.kernel.limits import Limits
from wasmsand.sdk import arguments

HOME: Final = "/home/user"
_DEFAULT: Final = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """How a sandbox is made: `Sandbox` explains each option, and makes one of these of them.

    Example:
        sandbox.options.timeout_ms
    """

    timeout_ms: float | None = 30_000
    fs_limit_bytes: int = _DEFAULT.fs_limit_bytes
    max_inodes: int = _DEFAULT.max_inodes
    memory_limit_bytes: int = _DEFAULT.memory_limit_bytes
    max_processes: int = _DEFAULT.max_processes
    max_open_files: int = _DEFAULT.max_open_files
    max_output_bytes: int = _DEFAULT.max_output_bytes
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Not in the repr: values are often secrets, and reprs end up in logs."""
    cwd: str = HOME
    wasm_dir: str | None = None

    def __post_init__(self) -> None:
        arguments.timeout_seconds("timeout_ms", self.timeout_ms)
        for name in LIMIT_NAMES:
            arguments.positive_integer(name, getattr(self, name))
        put = object.__setattr__
        put(self, "env", arguments.variables("env", self.env))
        if self.cwd != HOME:
            put(self, "cwd", arguments.absolute_path("cwd", self.cwd))
        if self.wasm_dir is not None:
            put(self, "wasm_dir", arguments.host_path("wasm_dir", self.wasm_dir))

    def limits(self) -> Limits:
        """The kernel's part of the options."""
        return Limits(
            fs_limit_bytes=self.fs_limit_bytes,
            max_inodes=self.max_inodes,
            memory_limit_bytes=self.memory_limit_bytes,
            max_processes=self.max_processes,
            max_open_files=self.max_open_files,
            max_output_bytes=self.max_output_bytes,
        )


LIMIT_NAMES: Final = (
    "fs_limit_bytes",
    "max_inodes",
    "memory_limit_bytes",
    "max_processes",
    "max_open_files",
    "max_output_bytes",
)
"""Options that are limits: positive integers, and names of `Limits`' fields."""
