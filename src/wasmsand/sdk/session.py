"""`Session`: the part of the API that `Shell` and `PythonSession` share.

Owns the life cycle of a session, and the checks that every `run` makes. Rules: `conversation`
exchanges messages with the interpreter; the subclass defines their content.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import ClassVar, Generic, Self, TypeVar

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import Backend, BackendProcess
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, SandboxTimeout
from wasmsand.sdk.conversation import Conversation, Dialect
from wasmsand.sdk.output import TextSink
from wasmsand.sdk.session_request import SessionRequest

_Request = TypeVar("_Request", bound=SessionRequest)


def new_identity() -> str:
    """The identity of a new session."""
    return os.urandom(8).hex()


class Session(Generic[_Request]):
    """An interpreter in the sandbox that keeps its state from call to call."""

    kind: ClassVar[str]
    """The kind of interpreter, as in a saved sandbox."""

    def _open(
        self,
        attachment: Attachment,
        process: BackendProcess,
        dialect: Dialect[_Request],
        identity: str,
    ) -> None:
        self._attachment = attachment
        self._dialect = dialect
        self._identity = identity
        self._conversation = Conversation(attachment, process, dialect)

    @property
    def identity(self) -> str:
        """By which a session is known again in copies of its sandbox."""
        return self._identity

    def _still(self, seconds: float = 0.0) -> AbstractContextManager[None]:
        """Exclude requests until the block ends. Raises `StateError` if one is being made, and does
        not end within `seconds`."""
        return self._conversation.still(seconds)

    @abstractmethod
    def _capture(self, backend: Backend) -> object:
        """The interpreter with its memory, as `Backend.capture` returns it. The caller has made the
        session `still`. Raises `StateError`."""

    def _be_left_behind(self) -> None:
        """The sandbox was restored to a state without this session."""
        self._conversation.be_left_behind()

    def _continue_as(self, process: BackendProcess) -> None:
        """The sandbox was restored: talk to the interpreter that it has now."""
        self._conversation = Conversation(self._attachment, process, self._dialect)

    @property
    def pid(self) -> int:
        """The process ID of the session's interpreter in the sandbox."""
        return self._conversation.process.pid

    @property
    def closed(self) -> bool:
        """Whether the session is known to have ended: through `close`, through its own code (`exit`
        in a shell, `os._exit` in Python), or with the sandbox."""
        return self._conversation.closed

    @property
    def exit_code(self) -> int | None:
        """The exit code of the session's interpreter, once it is known to have ended by itself."""
        return self._conversation.exit_code

    def close(self) -> None:
        """End the session and everything that it started. Calling it again does nothing.

        Example:
            session.close()
        """
        self._conversation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} pid={self.pid}{' ended' if self.closed else ''}>"

    def _check_run(
        self,
        timeout_ms: float | SandboxTimeout | None,
        on_stdout: TextSink | None,
        on_stderr: TextSink | None,
    ) -> float | None:
        """Check the common arguments of `run`. Returns the timeout in seconds."""
        if on_stdout is not None:
            arguments.callback("on_stdout", on_stdout)
        if on_stderr is not None:
            arguments.callback("on_stderr", on_stderr)
        if timeout_ms is SANDBOX_TIMEOUT:
            timeout_ms = self._attachment.options.timeout_ms
        return arguments.timeout_seconds("timeout_ms", timeout_ms)
