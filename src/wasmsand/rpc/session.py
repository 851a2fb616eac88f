"""What one client has: at most one sandbox.

Rules: there is no sandbox before `create` and none after `kill`; every failure of the sandbox
is an `RpcError` with the name of an errno in front, and whatever else goes wrong is a bug of
ours and passes through.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wasmsand.rpc.params import invalid
from wasmsand.rpc.protocol import SANDBOX_ERROR, RpcError
from wasmsand.sdk.errors import (
    CommandError,
    FileError,
    ImageMissingError,
    SandboxClosedError,
    SandboxError,
    ToolError,
)
from wasmsand.sdk.sandbox import Sandbox


class Session:
    """One client's sandbox, from `create` to `kill`."""

    def __init__(self) -> None:
        self._sandbox: Sandbox | None = None
        self.ended = False
        """Whether the client has asked for the end."""

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox. Raises `RpcError` if there is none."""
        if self._sandbox is None:
            if self.ended:
                raise sandbox_error("ENODEV", "the sandbox was killed")
            raise sandbox_error("ENODEV", "there is no sandbox yet; call create first")
        return self._sandbox

    def begin(self, sandbox: Sandbox) -> None:
        """`sandbox` is the client's."""
        self._sandbox = sandbox

    def check_can_begin(self) -> None:
        """Raise `RpcError` if there is, or was, a sandbox."""
        if self.ended:
            raise sandbox_error("ENODEV", "the sandbox was killed")
        if self._sandbox is not None:
            raise sandbox_error(
                "EEXIST", "the sandbox was created already; start another process for another one"
            )

    def end(self) -> None:
        """Destroy the sandbox, if there is one."""
        self.ended = True
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox.kill()


def sandbox_error(errno_name: str, message: str, **data: object) -> RpcError:
    """A failure with code 1: the message begins with the errno."""
    return RpcError(
        SANDBOX_ERROR,
        f"{errno_name}: {message.removeprefix(f'{errno_name}: ')}",
        {"errno": errno_name, **data},
    )


@contextmanager
def sandbox_failures() -> Iterator[None]:
    """Make `RpcError`s of what the API raises on purpose."""
    try:
        yield
    except FileError as error:
        raise sandbox_error(
            error.errno_name, str(error), path=error.path, type=type(error).__name__
        ) from None
    except CommandError as error:
        raise sandbox_error(error.errno_name, str(error), type="CommandError") from None
    except ToolError as error:
        raise sandbox_error(
            error.errno_name, str(error), path=error.path, type="ToolError"
        ) from None
    except ImageMissingError as error:
        raise sandbox_error("ENOENT", str(error), type="ImageMissingError") from None
    except SandboxClosedError as error:
        raise sandbox_error("ENODEV", str(error), type="SandboxClosedError") from None
    except SandboxError as error:
        raise sandbox_error("EIO", str(error), type=type(error).__name__) from None
    except ValueError as error:  # types are checked already: this is a value
        raise invalid(str(error)) from None
