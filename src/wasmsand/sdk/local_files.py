"""States of local sandboxes as streams of bytes.

Owns `write_local` and `read_local`, the SDK's side of `machine.saved`: options and sessions in the
header of a file, and public exceptions. Rules: a file grants nothing. Its limits count up to the
default ones; everything that concerns the host comes from the options of whoever loads it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from operator import is_
from typing import IO, Any, Final

from wasmsand.machine import ImageMissing, MachineState, WasmProgramRejected
from wasmsand.machine.saved import (
    NewerVersion,
    OtherImage,
    SavedMachine,
    StateRejected,
    TooLarge,
    write_machine,
)
from wasmsand.machine.saved.checked import Fields
from wasmsand.machine.saved.processes import require_no_mounts
from wasmsand.machine.sessions import CapturedSession
from wasmsand.sdk.errors import (
    ImageMissingError,
    StateError,
    StateFileError,
    StateImageError,
    StateLimitError,
    StateVersionError,
    UnsupportedError,
    WasmDirError,
)
from wasmsand.sdk.local import LocalBackend, machine_options
from wasmsand.sdk.options import SETTINGS, SandboxOptions
from wasmsand.sdk.state import SandboxState, SavedSession

_KINDS: Final = ("shell", "python", "program")
_LIMITS: Final = tuple(option.name for option in SETTINGS if option.is_limit)
_DEFAULTS: Final = SandboxOptions()
_NAME_MAX: Final = 255
_IDENTITY_MAX: Final = 64
_COUNT_MAX: Final = 1 << 53
_PACKAGES_MAX: Final = 1000


def write_local(state: SandboxState, name: str | None, stream: IO[bytes]) -> None:
    """Write a state. Raises `StateError`."""
    machine = state.machine
    if not isinstance(machine, MachineState):
        raise UnsupportedError("only sandboxes of this process can be saved here")
    if state.kept is not None:
        machine = replace(machine, variables=dict(state.kept.variables), cwd=state.kept.cwd)
    sessions = [saved.captured for saved in state.sessions]
    captured = [session for session in sessions if isinstance(session, CapturedSession)]
    try:
        write_machine(stream, machine, captured, _about(state, name))
    except StateRejected as error:
        raise StateError(str(error)) from None


def require_savable(captured: object) -> None:
    """Raise `StateError` if a captured program cannot be saved. What a server has captured is
    checked there."""
    if isinstance(captured, CapturedSession):
        try:
            require_no_mounts(captured.process)
        except StateRejected as error:
            raise StateError(str(error)) from None


def _about(state: SandboxState, name: str | None) -> dict[str, Any]:
    options = state.options
    return {
        "name": name,
        "saved": int(time.time()),
        "limits": {name: getattr(options, name) for name in _LIMITS},
        "timeout_ms": options.timeout_ms,
        "packages": list(options.packages),
        "sessions": [{"kind": saved.kind, "identity": saved.identity} for saved in state.sessions],
    }


def read_local(
    stream: IO[bytes],
    options: SandboxOptions | None,
    *,
    only_files: bool = False,
    trusts_limits: bool = False,
) -> tuple[SandboxState, str | None]:
    """Read a state and its name. `only_files`: without sessions, onto any image. `trusts_limits`:
    limits above the default ones are granted. Raises `StateError`."""
    with _public_errors():
        saved = SavedMachine(stream)
        about = saved.about
        chosen = _saved_options(about, trusts_limits) if options is None else options
        try:
            chosen = replace(chosen, env=dict(saved.variables), cwd=saved.cwd)
        except (TypeError, ValueError) as error:
            raise StateRejected(f"damaged: {error}") from None
        known = _known_sessions(about, chosen)
        name = about.text("name", _NAME_MAX) if "name" in about else None
        machine, captured = saved.load(machine_options(chosen), only_files=only_files)
        if len(captured) != len(known) and not only_files:
            raise StateRejected("damaged: the number of sessions is wrong")
        sessions = tuple(
            SavedSession(kind, identity, session)
            for (kind, identity), session in zip(known, captured, strict=False)
        )
        return SandboxState(chosen, LocalBackend(chosen, machine), machine, sessions), name


def _known_sessions(about: Fields, options: SandboxOptions) -> list[tuple[str, str]]:
    """The kinds and identities of the sessions."""
    known = [
        (session.text("kind", 16), session.text("identity", _IDENTITY_MAX))
        for session in about.objects("sessions", options.max_processes)
    ]
    if any(kind not in _KINDS for kind, _ in known):
        raise StateRejected("damaged: an unknown kind of session")
    return known


def _saved_options(about: Fields, trusts_limits: bool) -> SandboxOptions:
    """The options of a file."""
    fields = about.fields("limits")
    limits = {name: fields.integer(name, 1, _COUNT_MAX) for name in _LIMITS}
    for name, value in limits.items():
        default = getattr(_DEFAULTS, name)
        if value > default and not trusts_limits:
            raise TooLarge(
                f"it was saved with {name}={value}, and the default is {default}: load it with "
                f"options=SandboxOptions({name}={value}) if you want to grant that"
            )
    timeout = about.value("timeout_ms")
    packages = [str(package) for package in about.items("packages", _PACKAGES_MAX)]
    try:
        return SandboxOptions(**limits, timeout_ms=timeout, packages=packages)  # type: ignore[arg-type] # checked there
    except (TypeError, ValueError) as error:
        raise StateRejected(f"damaged: {error}") from None


def is_same(state: object, other: object) -> bool:
    """Whether two states of one sandbox have the same files and variables."""
    if not isinstance(state, MachineState) or not isinstance(other, MachineState):
        return False
    layers, others = state.tree.layers, other.tree.layers
    return (
        len(layers) == len(others)
        and all(map(is_, layers, others))
        and state.variables == other.variables
        and state.cwd == other.cwd
    )


@contextmanager
def _public_errors() -> Iterator[None]:
    try:
        yield
    except NewerVersion as error:
        raise StateVersionError(str(error)) from None
    except OtherImage as error:
        raise StateImageError(str(error)) from None
    except TooLarge as error:
        raise StateLimitError(str(error)) from None
    except StateRejected as error:
        raise StateFileError(str(error)) from None
    except ImageMissing as error:
        raise ImageMissingError(str(error)) from None
    except WasmProgramRejected as rejected:
        raise WasmDirError(str(rejected), str(rejected.path), rejected.errno_name) from None
    except MemoryError as error:
        raise StateError(f"the host has no memory for this: {error}") from None
