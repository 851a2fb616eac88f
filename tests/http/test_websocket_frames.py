"""The frames of WebSockets: what one side encodes, the other one decodes."""

from __future__ import annotations

import random

import pytest

from wasmsand.http.websocket_frames import (
    BINARY,
    PING,
    TEXT,
    Message,
    Messages,
    WebSocketError,
    accept_value,
    frame,
)

pytestmark = pytest.mark.no_userland


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("size", [0, 1, 3, 125, 126, 65535, 65536, 100_001])
def test_a_message_arrives_however_it_is_cut(masked: bool, size: int) -> None:
    content = random.Random(size).randbytes(size)
    data = frame(BINARY, content, masked=masked)
    messages = Messages(masked=masked, limit=200_000)
    cuts = random.Random(size + 1)
    while data:
        assert messages.next() is None
        step = 1 + cuts.randrange(max(1, len(data)))
        messages.feed(data[:step])
        data = data[step:]
    assert messages.next() == Message(BINARY, content)
    assert messages.next() is None


def test_parts_are_joined_and_control_frames_come_between() -> None:
    messages = Messages(masked=False, limit=10)
    messages.feed(b"\x01\x03abc" + frame(PING, b"p", masked=False) + b"\x00\x01d\x80\x02ef")
    assert messages.next() == Message(PING, b"p")
    assert messages.next() == Message(TEXT, b"abcdef")


def test_a_message_in_parts_has_the_same_limit() -> None:
    messages = Messages(masked=False, limit=10)
    messages.feed(b"\x02\x08abcdefgh\x80\x08abcdefgh")
    with pytest.raises(WebSocketError) as raised:
        messages.next()
    assert raised.value.code == 1009


def test_random_bytes_never_do_more_than_raise() -> None:
    source = random.Random(1)
    codes = set()
    for _ in range(3000):
        messages = Messages(masked=source.random() < 0.5, limit=1000)
        messages.feed(source.randbytes(source.randrange(60)))
        try:
            while messages.next() is not None:
                pass
        except WebSocketError as error:
            codes.add(error.code)
    assert codes == {1002, 1009}


def test_the_answer_to_a_key_is_that_of_the_standard() -> None:
    assert accept_value("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
