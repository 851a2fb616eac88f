"""One sandbox of a client, and its commands, sessions and streams.

Rules: `family` owns the sandboxes of the client; the first one is created by `create`, the others
are copies. There is no sandbox before `create` and none after `kill`; everything that a client can
accumulate is bounded; a failure of the sandbox becomes an `RpcError` whose message begins with
an errno's name; any other exception is a bug and passes through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from wasmsand.rpc.params import invalid
from wasmsand.rpc.protocol import SANDBOX_ERROR, RpcError
from wasmsand.rpc.transfers import Transfer
from wasmsand.sdk.backend import Backend, BackendProcess, BackendTerminal
from wasmsand.sdk.client_programs import Captures, backend_of
from wasmsand.sdk.command_builder import CommandBuilder
from wasmsand.sdk.errors import (
    ArchiveError,
    CommandError,
    FileError,
    ImageMissingError,
    PackageError,
    PortError,
    SandboxClosedError,
    SandboxError,
    StateError,
    WasmDirError,
)
from wasmsand.sdk.options import SandboxOptions
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.sdk.shell import Shell
from wasmsand.sdk.state import SavedSession, Snapshot

if TYPE_CHECKING:
    from wasmsand.rpc.family import Family

_COMMANDS_MAX: Final = 4096
_TRANSFERS_MAX: Final = 64
"""Each incoming transfer has a thread."""
_SESSIONS_MAX: Final = 256
_TERMINALS_MAX: Final = 256
"""With closed ones that were not released; the sandbox bounds the open ones."""
_PACKAGE_ERRNO: Final = "ENOPKG"
_Kept = TypeVar("_Kept")


class Handles(Generic[_Kept]):
    """Objects that a client refers to by number."""

    def __init__(self, kind: str, limit: int, end: Callable[[_Kept], object]) -> None:
        """`end` releases one object."""
        self._end = end
        self._kind = kind
        self._limit = limit
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._last = 0
        self._kept: dict[int, _Kept] = {}

    def add(self, thing: _Kept) -> int:
        """The number of a new object. If there are too many, ends it and raises `RpcError`."""
        with self._lock:
            if len(self._kept) < self._limit:
                self._last += 1
                self._kept[self._last] = thing
                return self._last
        self._end(thing)
        raise sandbox_error("EMFILE", f"there are {self._limit} {self._kind}s already; close one")

    def get(self, number: int) -> _Kept:
        """The object with this number. Raises `RpcError` if there is none."""
        with self._lock:
            thing = self._kept.get(number)
        if thing is None:
            raise sandbox_error("EBADF", f"no {self._kind} {number}")
        return thing

    def drop(self, number: int) -> _Kept | None:
        """Forget the object with this number, if there is one."""
        with self._lock:
            return self._kept.pop(number, None)

    def end(self, number: int) -> None:
        """Forget and end the object with this number, if there is one."""
        thing = self.drop(number)
        if thing is not None:
            self._end(thing)

    def drop_all(self) -> list[_Kept]:
        """Forget all objects."""
        return [thing for _, thing in self.replace({})]

    def items(self) -> list[tuple[int, _Kept]]:
        """All objects with their numbers."""
        with self._lock:
            return list(self._kept.items())

    def replace(self, things: Mapping[int, _Kept]) -> list[tuple[int, _Kept]]:
        """Forget all objects, and keep others under these numbers. Returns the forgotten ones."""
        with self._lock:
            kept, self._kept = list(self._kept.items()), dict(things)
            self._last = max([self._last, *things])
            return kept


class RpcSession:
    """One sandbox of a client, from `create` or a copy to `kill`."""

    def __init__(
        self, family: Family, number: int, notify: Callable[[str, dict[str, object]], None]
    ) -> None:
        """`notify` sends a notification to the client."""
        self.family = family
        self.number = number
        self.notify = notify
        self._sandbox: Sandbox | None = None
        self._backend: Backend | None = None
        self._builder: CommandBuilder | None = None
        self.ended = False
        """Whether the client has called `kill`."""
        self.loaded: tuple[SavedSession, ...] = ()
        """The sessions of a file that was loaded, until the client has asked for them."""
        self.captures = Captures(0)
        self.commands: Handles[BackendProcess] = Handles(
            "command", _COMMANDS_MAX, lambda process: process.kill()
        )
        self.transfers: Handles[Transfer] = Handles(
            "stream", _TRANSFERS_MAX, lambda transfer: transfer.close()
        )
        self.terminals: Handles[BackendTerminal] = Handles(
            "terminal", _TERMINALS_MAX, lambda terminal: terminal.close()
        )
        self.shells: Handles[Shell] = Handles("shell", _SESSIONS_MAX, Shell.close)
        self.interpreters: Handles[PythonSession] = Handles(
            "interpreter", _SESSIONS_MAX, PythonSession.close
        )

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox. Raises `RpcError` if there is none."""
        if self._sandbox is None:
            raise self._missing()
        return self._sandbox

    @property
    def backend(self) -> Backend:
        """The sandbox's backend. Raises `RpcError` if there is no sandbox."""
        if self._backend is None:
            raise self._missing()
        return self._backend

    @property
    def builder(self) -> CommandBuilder:
        """The builder of command requests. Raises `RpcError` if there is no sandbox."""
        if self._builder is None:
            raise self._missing()
        return self._builder

    def _missing(self) -> RpcError:
        if self.ended:
            return sandbox_error("ENODEV", "the sandbox was killed")
        return sandbox_error("ENODEV", "no sandbox yet; call create first")

    def check_can_begin(self) -> None:
        """Raises `RpcError` if there is, or was, a sandbox."""
        if self.ended:
            raise self._missing()
        if self._sandbox is not None:
            raise sandbox_error(
                "EEXIST", "the sandbox exists already; start another process for another sandbox"
            )

    def begin(self, backend: Backend, options: SandboxOptions) -> None:
        """Create the client's sandbox on `backend`."""
        self.use(Sandbox.from_backend(backend, options))

    def use(self, sandbox: Sandbox) -> None:
        """From now on, this is the client's sandbox. If it was killed meanwhile, kill it too."""
        self._sandbox = sandbox
        self._backend = backend_of(sandbox)
        self._builder = CommandBuilder(sandbox.options, sandbox.env.chosen)
        self.captures = Captures(sandbox.options.memory_limit_bytes)
        if self.ended:
            self.end()

    def restore(self, snapshot: Snapshot, numbers: Mapping[str, int]) -> None:
        """Make the sandbox what it was. Its commands and streams end."""
        sandbox = self.sandbox
        sandbox.restore(snapshot)
        self._forget_work()
        self.use(sandbox)
        self.number_sessions(numbers)

    def number_sessions(self, numbers: Mapping[str, int]) -> None:
        """Give sessions of a copy the numbers that they had, by their identity."""
        shells: dict[int, Shell] = {}
        interpreters: dict[int, PythonSession] = {}
        for kept in self.sandbox.sessions:
            if isinstance(kept, Shell):
                shells[numbers[kept.identity]] = kept
            else:
                interpreters[numbers[kept.identity]] = kept
        self.shells.replace(shells)
        self.interpreters.replace(interpreters)

    def numbers(self) -> dict[str, int]:
        """The numbers of the sessions, by their identity."""
        shells = {kept.identity: number for number, kept in self.shells.items()}
        return shells | {kept.identity: number for number, kept in self.interpreters.items()}

    def end(self) -> None:
        """Destroy the sandbox, if there is one. Requests that wait for it end."""
        self.ended = True
        sandbox, self._sandbox = self._sandbox, None
        self._backend = self._builder = None
        if sandbox is not None:
            sandbox.kill()
        self._forget_work()
        self.shells.drop_all()
        self.interpreters.drop_all()
        self.family.forget(self.number)

    def _forget_work(self) -> None:
        self.commands.drop_all()
        self.captures.drop_all()
        self.terminals.drop_all()
        for transfer in self.transfers.drop_all():
            transfer.close()


def captured_identity(number: int) -> str:
    """The identity of a started command in a snapshot."""
    return str(number)


def sandbox_error(errno_name: str, message: str, **data: object) -> RpcError:
    """An error with code 1; the message begins with the errno's name."""
    return RpcError(
        SANDBOX_ERROR,
        f"{errno_name}: {message.removeprefix(f'{errno_name}: ')}",
        {"errno": errno_name, **data},
    )


@contextmanager
def sandbox_failures() -> Iterator[None]:
    """Turn documented exceptions of the API into `RpcError`."""
    try:
        yield
    except FileError as error:
        kind = "archive" if isinstance(error, ArchiveError) else "file"
        raise sandbox_error(error.errno_name, str(error), path=error.path, kind=kind) from None
    except CommandError as error:
        raise sandbox_error(error.errno_name, str(error), kind="command") from None
    except PortError as error:
        raise sandbox_error(error.errno_name, str(error), kind="port", port=error.port) from None
    except WasmDirError as error:
        code, path = error.errno_name, error.path
        raise sandbox_error(code, str(error), path=path, kind="wasm_dir") from None
    except ImageMissingError as error:
        raise sandbox_error("ENOENT", str(error), kind="image") from None
    except PackageError as error:
        details = {"kind": "package", "code": error.code, "package": error.package}
        raise sandbox_error(_PACKAGE_ERRNO, str(error), **details) from None
    except SandboxClosedError as error:
        raise sandbox_error("ENODEV", str(error), kind="closed") from None
    except StateError as error:
        raise sandbox_error("EBUSY", str(error), kind="state", code=error.code) from None
    except SandboxError as error:
        raise sandbox_error("EIO", str(error)) from None
    except ValueError as error:  # an invalid value; types were checked before
        raise invalid(str(error)) from None
