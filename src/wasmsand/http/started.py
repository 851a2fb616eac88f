"""A started command, which runs on between requests.

Rules: output is sent in numbered batches, and a batch is kept until the client acknowledges
it, so a lost response loses no output; one request reads at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from wasmsand.http.failures import ApiFailure
from wasmsand.http.messages import OutputBatch, piece
from wasmsand.sdk.backend import BackendProcess, Output

Pieces = tuple[Output, ...] | None
InThread = Callable[[Callable[[], Pieces]], Awaitable[Pieces]]


class Started:
    """One started command."""

    def __init__(self, identity: str, process: BackendProcess) -> None:
        self.id = identity
        self.process = process
        self._reading = asyncio.Lock()
        self._last = OutputBatch(number=0, pieces=[], ended=False)

    async def batch(self, after: int, seconds: float, in_thread: InThread) -> OutputBatch:
        """The batch after number `after`. If there is no output for `seconds`, an empty batch
        with the number `after`."""
        async with self._reading:
            if after == self._last.number - 1:
                return self._last
            if after != self._last.number:
                raise ApiFailure(
                    409,
                    "batch_gone",
                    f"the next batch of output is {self._last.number + 1}, not {after + 1}: "
                    "another client reads this command's output too",
                )
            if self._last.ended:
                return self._last
            pieces = await in_thread(lambda: output_of(self.process, seconds))
            if pieces is None:
                return OutputBatch(
                    number=self._last.number, pieces=[], ended=False, uncounted_ms=self._uncounted()
                )
            self._last = OutputBatch(
                number=self._last.number + 1,
                pieces=[piece(output.fd, output.data) for output in pieces],
                ended=not pieces,
                uncounted_ms=self._uncounted(),
            )
            return self._last

    def _uncounted(self) -> float:
        return self.process.uncounted_seconds() * 1000


def output_of(process: BackendProcess, seconds: float) -> Pieces:
    """The next output; empty when the output has ended; None if there is none for `seconds`."""
    try:
        return process.read(seconds)
    except TimeoutError:
        return None
