"""Responses that the bridge itself gives.

Owns `Refusal` and the bytes of such responses. Rules: plain text; it contains nothing but the
guest's own request and the policy's reason, never a secret and nothing of the host.
"""

from __future__ import annotations

from http import HTTPStatus

import h11


class Refusal(Exception):
    """The request is not sent to the host: the guest gets a response of the bridge."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def response_to(
    refusal: Refusal, connection: h11.Connection, *, close: bool, is_head: bool
) -> bytes:
    """The whole response, for a connection that has not sent one to the current request."""
    body = f"wasmsand: {refusal.text}\n".encode("utf-8", "replace")
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
    ]
    if close:
        headers.append(("Connection", "close"))
    reason = HTTPStatus(refusal.status).phrase
    sent = connection.send(h11.Response(status_code=refusal.status, headers=headers, reason=reason))
    if not is_head:
        sent = (sent or b"") + (connection.send(h11.Data(data=body)) or b"")
    return (sent or b"") + (connection.send(h11.EndOfMessage()) or b"")
