"""The loop of `wasmsand rpc`: reads requests, sends responses.

Rules: requests are executed and answered one after another, in the order of arrival, except
methods that wait: each runs on its own thread and is answered when it has finished. No input
line ends the loop. The loop ends after `kill`, at the end of standard input, when the client
closes standard output, and on SIGTERM or SIGINT; it always destroys all sandboxes.
"""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Final

from wasmsand.confinement import Barriers
from wasmsand.rpc import protocol
from wasmsand.rpc.descriptors import DescriptorReceiver
from wasmsand.rpc.family import Family
from wasmsand.rpc.methods import METHODS
from wasmsand.rpc.params import Params
from wasmsand.rpc.protocol import RpcError, RpcRequest
from wasmsand.rpc.session import sandbox_error, sandbox_failures
from wasmsand.sdk.backend import Cancellation
from wasmsand.wire import strict_json
from wasmsand.wire.channel import LineChannel, PeerGone, Terminated, claim_stdio, ended_by_signals
from wasmsand.wire.lines import LineTooLong

_PEER_GONE_STATUS: Final = 141
"""128 + SIGPIPE, as a shell reports it."""
_BATCH_MAX: Final = 10_000
_WAITING_MAX: Final = 512
"""Waiting requests at the same time; each has a thread."""
_ENDING_SECONDS: Final = 2.0
"""How long `kill` waits for the responses to other requests."""

Response = dict[str, object]


def serve_stdio(max_line_bytes: int, barriers: Barriers, descriptors: int | None = None) -> int:
    """Serve the client on standard input and output. Returns the exit status. `barriers` are the
    barriers that confine this process; `descriptors` is the descriptor over which the client passes
    sockets."""
    channel = claim_stdio(max_line_bytes)
    receiver = None if descriptors is None else DescriptorReceiver(descriptors)
    server = RpcServer(channel, barriers, receiver)
    try:
        with ended_by_signals(), channel.watched():
            server.serve()
    except PeerGone:
        return _PEER_GONE_STATUS
    except Terminated as ending:
        return _PEER_GONE_STATUS if channel.gone else ending.exit_status
    finally:
        server.family.end()
    return 0


class RpcServer:
    """One client."""

    def __init__(
        self,
        channel: LineChannel,
        barriers: Barriers,
        descriptors: DescriptorReceiver | None = None,
    ) -> None:
        self._channel = channel
        self.family = Family(
            lambda method, params: channel.send(protocol.notification(method, params)),
            barriers,
            descriptors,
        )
        self._changed = threading.Condition()
        self._waiting = 0
        """Requests without a response so far; guarded by the condition."""

    def serve(self) -> None:
        """Read and answer lines until the end."""
        family, channel = self.family, self._channel
        while not family.ended:
            try:
                line = channel.next_line()
            except LineTooLong as error:
                message = f"Invalid Request: {error}; raise --max-line-bytes"
                refusal = RpcError(protocol.INVALID_REQUEST, message)
                channel.send(protocol.failure(None, refusal))
                continue
            if line is None:
                self._wait_for_all()
                return
            if not line.strip():
                continue
            response = self._answer(line)
            if family.ended:
                self._wait_for_all(_ENDING_SECONDS)
                channel.unwatch()
            if response is not None:
                channel.send(response)
            while family.after_response:
                family.after_response.pop(0)()

    def _answer(self, line: bytes) -> object | None:
        """The response to one line: an object, an array for a batch, or None for no response."""
        try:
            value = strict_json.decode(line)
        except strict_json.BadJson as error:
            return protocol.failure(None, RpcError(protocol.PARSE_ERROR, f"Parse error: {error}"))
        if not isinstance(value, list):
            return self._answer_one(value, may_wait=True)
        if not value or len(value) > _BATCH_MAX:
            wrong = "an empty batch" if not value else f"a batch of more than {_BATCH_MAX}"
            refusal = RpcError(protocol.INVALID_REQUEST, f"Invalid Request: {wrong}")
            return protocol.failure(None, refusal)
        responses = [self._answer_one(item, may_wait=False) for item in value]
        return [response for response in responses if response is not None] or None

    def _answer_one(self, value: object, *, may_wait: bool) -> Response | None:
        """The response; None if there is none, or if it is sent later."""
        try:
            request = protocol.request_of(value)
        except RpcError as error:
            return protocol.failure(protocol.id_of(value), error)
        method = METHODS.get(request.method)
        if may_wait and method is not None and method.waits:
            return self._begin(request)
        response = self._respond(request, None)
        return None if request.is_notification else response

    def _begin(self, request: RpcRequest) -> Response | None:
        """Execute a request that waits, on its own thread."""
        with self._changed:
            if self._waiting >= _WAITING_MAX:
                error = sandbox_error("EAGAIN", f"{_WAITING_MAX} requests wait already")
                return None if request.is_notification else protocol.failure(request.id, error)
            self._waiting += 1
        cancellation = Cancellation()
        self.family.cancellations[request.id] = cancellation
        threading.Thread(
            target=self._finish, args=(request, cancellation), name="wasmsand-request", daemon=True
        ).start()
        return None

    def _finish(self, request: RpcRequest, cancellation: Cancellation) -> None:
        response = self._respond(request, cancellation)
        self.family.cancellations.pop(request.id, None)
        try:
            if not request.is_notification:
                self._channel.send(response)
        except PeerGone:
            pass  # a signal tells the main thread
        finally:
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()

    def _wait_for_all(self, timeout: float | None = None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, timeout)

    def _respond(self, request: RpcRequest, cancellation: Cancellation | None) -> Response:
        try:
            return protocol.success(request.id, self._call(request, cancellation))
        except RpcError as error:
            return protocol.failure(request.id, error)

    def _call(self, request: RpcRequest, cancellation: Cancellation | None) -> dict[str, object]:
        method = METHODS.get(request.method)
        if method is None:
            raise RpcError(protocol.METHOD_NOT_FOUND, f"Method not found: {request.method[:80]}")
        given = dict(request.params)
        number = None
        if "sandbox" in given:  # every method has this parameter
            number = Params({"sandbox": given.pop("sandbox")}).integer("sandbox")
        params = Params(given, cancellation, number)
        params.check_names(method.required, method.optional)
        session = self.family.first if number is None else self.family.find(number)
        try:
            with sandbox_failures():
                return method.handler(session, params)
        except RpcError:
            raise
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            raise RpcError(
                protocol.INTERNAL_ERROR, f"Internal error: {type(error).__name__}: {error}"
            ) from None
