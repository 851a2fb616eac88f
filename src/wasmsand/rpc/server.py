"""The loop of `wasmsand rpc`: a line, an answer.

Rules: requests are carried out one after another, in the order in which they came, and so are
they answered; whatever a line holds, the loop goes on; it ends after `kill`, at the end of
standard input, when nobody reads the answers any more, and by SIGTERM or SIGINT, and never
leaves a sandbox behind.
"""

from __future__ import annotations

import sys
import traceback
from typing import Final

from wasmsand.rpc import protocol
from wasmsand.rpc.methods import METHODS
from wasmsand.rpc.params import Params
from wasmsand.rpc.protocol import RpcError
from wasmsand.rpc.session import Session, sandbox_failures
from wasmsand.wire import strict_json
from wasmsand.wire.channel import Channel, PeerGone, Terminated, claim_stdio, ended_by_signals
from wasmsand.wire.lines import LineTooLong

_PEER_GONE_STATUS: Final = 141
"""128 + SIGPIPE, as a shell reports it."""
_BATCH_MAX: Final = 10_000


def serve_stdio(max_line_bytes: int) -> int:
    """Serve the peer on standard input and output to the end; the exit status."""
    channel = claim_stdio(max_line_bytes)
    session = Session()
    try:
        with ended_by_signals(), channel.watched():
            serve(channel, session)
    except PeerGone:
        return _PEER_GONE_STATUS
    except Terminated as ending:
        return _PEER_GONE_STATUS if channel.gone else ending.exit_status
    finally:
        session.end()
    return 0


def serve(channel: Channel, session: Session) -> None:
    """Answer line after line."""
    while not session.ended:
        try:
            line = channel.next_line()
        except LineTooLong as error:
            refusal = RpcError(
                protocol.INVALID_REQUEST, f"Invalid Request: {error}; raise --max-line-bytes"
            )
            channel.send(protocol.failure(None, refusal))
            continue
        if line is None:
            return
        if not line.strip():
            continue
        response = answer(line, session)
        if session.ended:
            channel.unwatch()
        if response is not None:
            channel.send(response)


def answer(line: bytes, session: Session) -> object | None:
    """The response to one line: an object, an array for a batch, or None for none."""
    try:
        value = strict_json.decode(line)
    except strict_json.BadJson as error:
        return protocol.failure(None, RpcError(protocol.PARSE_ERROR, f"Parse error: {error}"))
    if not isinstance(value, list):
        return _answer_one(value, session)
    if not value or len(value) > _BATCH_MAX:
        wrong = "an empty batch" if not value else f"a batch of more than {_BATCH_MAX}"
        return protocol.failure(
            None, RpcError(protocol.INVALID_REQUEST, f"Invalid Request: {wrong}")
        )
    responses = [_answer_one(item, session) for item in value]
    return [response for response in responses if response is not None] or None


def _answer_one(value: object, session: Session) -> dict[str, object] | None:
    try:
        request = protocol.request_of(value)
    except RpcError as error:
        return protocol.failure(protocol.id_of(value), error)
    try:
        response = protocol.success(request.id, _call(request, session))
    except RpcError as error:
        response = protocol.failure(request.id, error)
    return None if request.is_notification else response


def _call(request: protocol.Request, session: Session) -> dict[str, object]:
    method = METHODS.get(request.method)
    if method is None:
        raise RpcError(protocol.METHOD_NOT_FOUND, f"Method not found: {request.method[:80]}")
    params = Params(request.params)
    params.check_names(method.required, method.optional)
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
