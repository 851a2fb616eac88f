"""A started command, which runs on between requests.

Rules: output is sent in numbered batches, and a batch is kept until the client acknowledges
it, so a lost response loses no output; one request reads at a time. A command may be a session that
the client drives itself (`SessionTag`). The server captures it only while no request uses it, and
while it waits for the client's next request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from msgspec import UNSET

from wasmsand.http.failures import BATCH_GONE, ApiFailure
from wasmsand.http.messages import CommandEnd, OutputBatch, SessionTag, piece
from wasmsand.sdk.backend import BackendProcess, Ended, Output
from wasmsand.sdk.python_session import DIALECT, REQUEST_HEADER
from wasmsand.sdk.shell_protocols import LINES, SESSION_MODE, STATUS_FD

Pieces = tuple[Output, ...] | None
InThread = Callable[[Callable[[], Pieces]], Awaitable[Pieces]]


class Started:
    """One started command. Used on the event loop only."""

    def __init__(
        self, identity: str, process: BackendProcess, session: SessionTag | None = None
    ) -> None:
        self.id = identity
        self.process = process
        self.session = session
        self._reading = asyncio.Lock()
        self._last = OutputBatch(number=0, pieces=[], ended=False)
        self._waiting: tuple[Output, ...] | None = None
        """Output that was read and not sent: the next batch."""
        self._is_resumed = False
        self._users = 0
        self._free = asyncio.Event()
        self._free.set()
        self._turn = None if session is None else _Turn(session.kind)
        self._became_idle = asyncio.Event()

    @classmethod
    def resumed(
        cls,
        identity: str,
        process: BackendProcess,
        session: SessionTag | None,
        waiting: tuple[Output, ...],
        last: OutputBatch,
    ) -> Started:
        """A command of a stored sandbox."""
        started = cls(identity, process, session)
        started._waiting = waiting or None
        started._last = last
        started._is_resumed = True
        return started

    @property
    def last(self) -> OutputBatch:
        """The last batch that was sent, which the client may ask for again."""
        return self._last

    @property
    def waiting(self) -> tuple[Output, ...]:
        """Output that was read and not sent."""
        return self._waiting or ()

    def put_back(self, outputs: tuple[Output, ...]) -> None:
        """Output that was read and not sent."""
        if outputs:
            self._waiting = (*self.waiting, *outputs)

    @asynccontextmanager
    async def use(self) -> AsyncIterator[BackendProcess]:
        """A request uses the command, and so it is not captured."""
        await self._free.wait()
        self._users += 1
        try:
            yield self.process
        finally:
            self._users -= 1
            if self.is_idle:
                self._became_idle.set()

    @property
    def is_idle(self) -> bool:
        """Whether no request uses it, and a session waits for the client's next request."""
        return not self._users and (self._turn is None or not self._turn.is_taken)

    async def wait_until_idle(self) -> None:
        """Wait until a request has left it idle, if it is not."""
        while not self.is_idle:
            self._became_idle.clear()
            await self._became_idle.wait()

    def hold(self) -> None:
        """Let requests wait until `let_go`; the command must be idle."""
        self._free.clear()

    def let_go(self) -> None:
        """See `hold`."""
        self._free.set()

    def note_input(self, data: bytes, fd: int) -> None:
        """The client is about to write this to the command."""
        if self._turn is not None:
            self._turn.note_input(data, fd)

    async def batch(self, after: int, seconds: float, in_thread: InThread) -> OutputBatch:
        """The batch after number `after`. If there is no output for `seconds`, an empty batch
        with the number `after`."""
        async with self._reading:
            if self._is_resumed:
                # The client may have received batches that the stored state does not know.
                self._is_resumed = False
                if after != self._last.number - 1:
                    self._last = OutputBatch(number=after, pieces=[], ended=False)
            if after == self._last.number - 1:
                return self._last
            if after != self._last.number:
                raise ApiFailure(
                    409,
                    BATCH_GONE,
                    f"the next batch of output is {self._last.number + 1}, not {after + 1}: "
                    "another client reads this command's output too",
                )
            if self._last.ended:
                return self._last
            pieces, self._waiting = self._waiting, None
            notices: tuple[str, ...] = ()

            def read() -> Pieces:
                nonlocal notices
                outputs = output_of(self.process, seconds)
                if outputs and self.session is not None:
                    notices = self.process.take_notices()
                return outputs

            if pieces is None:
                pieces = await in_thread(read)
            if pieces is None:
                return OutputBatch(
                    number=self._last.number, pieces=[], ended=False, uncounted_ms=self._uncounted()
                )
            if self._turn is not None:
                self._turn.note_output(pieces)
            self._last = OutputBatch(
                number=self._last.number + 1,
                pieces=[piece(output.fd, output.data) for output in pieces],
                ended=not pieces,
                uncounted_ms=self._uncounted(),
                notices=list(notices) or UNSET,
            )
            return self._last

    def _uncounted(self) -> float:
        return self.process.uncounted_seconds() * 1000


class _Turn:
    """Whether a session has a request of its client: the client has sent a request, and has not
    received the end of its answer yet. Both contain the request's token."""

    def __init__(self, kind: str) -> None:
        is_shell = kind == "shell"
        self._patterns = {DIALECT.request_fd: REQUEST_HEADER}
        """How to find a request, by the descriptor to which it is written."""
        self._answer_fd = DIALECT.report_fd
        if is_shell:
            protocols = (SESSION_MODE, LINES)
            self._patterns = {each.dialect.request_fd: each.request_pattern for each in protocols}
            self._answer_fd = STATUS_FD
        self._answer = b"%s " if is_shell else b'"token": "%s", "kind": "answer"'
        self.is_taken = False
        self._marker = b""
        """How the answer begins; empty if it is not known, or has begun."""
        self._has_begun = False
        self._tail = b""

    def note_input(self, data: bytes, fd: int) -> None:
        pattern = self._patterns.get(fd)
        if pattern is None:
            return
        found = pattern.search(data)
        if found is not None:
            self._marker, self._has_begun, self._tail = self._answer % found[1], False, b""
        self.is_taken = True

    def note_output(self, outputs: tuple[Output, ...]) -> None:
        data = b"".join(each.data for each in outputs if each.fd == self._answer_fd)
        if not self.is_taken or not data:
            return
        if not self._has_begun and self._marker:
            joined = self._tail + data
            at = joined.find(self._marker)
            self._tail = joined[-len(self._marker) :]
            if at < 0:
                return
            self._has_begun, data = True, joined[at:]
        if self._has_begun and b"\n" in data:
            self.is_taken = False


def output_of(process: BackendProcess, seconds: float) -> Pieces:
    """The next output; empty when the output has ended; None if there is none for `seconds`."""
    try:
        return process.read(seconds)
    except TimeoutError:
        return None


def command_end(ended: Ended) -> CommandEnd:
    """`ended` as a JSON message."""
    return CommandEnd(
        exit_code=ended.exit_code,
        timed_out=ended.timed_out,
        execution_time_ms=ended.seconds * 1000,
        notices=list(ended.notices),
    )
