"""Loads a saved sandbox into a separate process.

Owns `load_process_state`, which `Sandbox.load(isolation="process")` and the HTTP server use. Rules:
the file passes through this process unread; the other process, which is confined, reads it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import IO, Final

from wasmsand.rpc import values
from wasmsand.rpc.backend import ProcessBackend, open_connection, send_pieces, spare_for
from wasmsand.rpc.client import RpcConnection
from wasmsand.rpc.failures import failures
from wasmsand.rpc.params import Params
from wasmsand.rpc.process_copies import CopiedState, RemoteCapture
from wasmsand.rpc.shared_process import FIRST, SandboxAddress, SharedProcess
from wasmsand.sdk.errors import SandboxClosedError, StateError
from wasmsand.sdk.options import SETTINGS, SandboxOptions
from wasmsand.sdk.state import SandboxState, SavedSession
from wasmsand.sdk.unsupported import no_mounts

_PIECE: Final = 1 << 20
_SPARE_SECONDS: Final = 10.0
_LIMITS: Final = tuple(option.name for option in SETTINGS if option.is_limit)


def load_process_state(
    stream: IO[bytes], options: SandboxOptions | None, *, only_files: bool = False
) -> SandboxState:
    """A sandbox in a new process, from the file in `stream`. Raises `StateError`, and what
    `ProcessBackend` raises."""
    chosen = options or SandboxOptions()
    if chosen.mounts:
        raise no_mounts(ProcessBackend.kind)
    with failures():
        connection, begun = _begun(chosen, _wanted(options, only_files=only_files))
    try:
        with failures():
            pieces = iter(lambda: stream.read(_PIECE), b"")
            send_pieces(SandboxAddress(connection), begun, pieces)
            made = connection.call("loaded", {})
            barriers = tuple(connection.call("confinement", {}).texts("barriers"))
    except BaseException:
        connection.close()
        raise
    chosen = _options(made, options)
    programs, sessions = {}, []
    saved = made.objects("saved")
    for item in made.objects("commands"):
        number = item.integer("was")
        if not 0 <= number < len(saved):
            connection.close()
            raise StateError("the process of the sandbox does not know its sessions")
        programs[number] = (item.integer("command"), item.integer("pid"))
        session = saved[number]
        sessions.append(
            SavedSession(session.text("kind"), session.text("identity"), RemoteCapture(number))
        )
    copied = CopiedState(chosen.env, chosen.cwd, barriers, programs)
    backend = ProcessBackend.of_copy(SharedProcess(connection), FIRST, chosen, copied)
    return SandboxState(chosen, backend, None, tuple(sessions))


def _begun(options: SandboxOptions, wanted: dict[str, object]) -> tuple[RpcConnection, Params]:
    """A process that waits for the file. Raises `RpcError`."""
    spare = spare_for(options)
    if spare is not None:
        try:
            return spare, spare.call("load", wanted, _SPARE_SECONDS)
        except SandboxClosedError:
            pass  # the spare died or hangs: start a new process instead
    connection = open_connection(options)
    try:
        return connection, connection.call("load", wanted)
    except BaseException:
        connection.close()
        raise


def _wanted(options: SandboxOptions | None, *, only_files: bool) -> dict[str, object]:
    wanted: dict[str, object] = {"onlyFiles": only_files, "asCommands": True}
    if options is None:
        wanted["savedOptions"] = True
    else:
        wanted |= values.options_out(options)
        if options.network is not None and options.network.on_event is not None:
            wanted["networkEvents"] = True
    return wanted


def _options(made: Params, options: SandboxOptions | None) -> SandboxOptions:
    """The options that the sandbox has."""
    variables, cwd = made.variables("variables"), made.text("cwd")
    if options is not None:
        return replace(options, env=variables, cwd=cwd)
    limits = {item.text("name"): item.integer("value") for item in made.objects("limits")}
    return SandboxOptions(
        **{name: limits[name] for name in _LIMITS},  # type: ignore[arg-type] # limits are numbers
        timeout_ms=made.optional(Params.number, "timeoutMs"),
        packages=made.texts("packages"),
        env=variables,
        cwd=cwd,
    )
