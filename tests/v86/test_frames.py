"""The channel to the guest: what no agent of ours would send is refused."""

from __future__ import annotations

import struct

import pytest

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.sdk.backend import CommandRequest
from wasmsand.v86 import linux
from wasmsand.v86.command import GuestCommand
from wasmsand.v86.frames import PIECE, FromAgent, Room, ToAgent, call_payload, frame, run_payload

pytestmark = pytest.mark.no_userland


class Answers:
    """Stands for a hostile guest: gives fixed answers to system calls, and starts commands."""

    why_lost = ""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.command: GuestCommand | None = None
        self.sent: list[tuple[int, bytes]] = []

    def call(self, *_words: object) -> tuple[int, bytes]:
        answer = self._answers.pop(0)
        return len(answer), answer

    def add(self, command: GuestCommand) -> int:
        self.command = command
        return 1

    def send(self, kind: int, _identity: int, payload: bytes = b"") -> None:
        self.sent.append((kind, payload))
        if kind == ToAgent.RUN:
            assert self.command is not None
            self.command.on_frame(FromAgent.STARTED, struct.pack("<ii", 7, 1))


def test_frames_have_the_layout_of_the_agent() -> None:
    assert frame(ToAgent.KILL, 3) == struct.pack("<IIBBBB", 0, 3, 4, 0, 0, 0)
    payload = call_payload(4, (1, b"text", Room(9), Room(5, is_counted=False)))
    assert payload == struct.pack("<13I", 4, 0, 1, 1, 4, 3, 9, 2, 5, 0, 0, 0, 0) + b"text"
    run = run_payload((1000, 1000), 64, b"/", [b"a", b"b"], [b"X=1"], [0], [1, 2])
    assert run == struct.pack("<10I", 1000, 1000, 64, 2, 1, 1, 2, 0, 1, 2) + b"/\0a\0b\0X=1\0"


@pytest.mark.parametrize(
    "answer",
    [
        struct.pack("<QqHB", 1, 0, 0, 4) + b"a\0",
        struct.pack("<QqHB", 1, 0, 24, 4) + b"a/b\0\0",
        struct.pack("<QqHB", 1, 0, 24, 4) + b"\0\0\0\0\0",
    ],
)
def test_names_that_no_directory_has_are_refused(answer: bytes) -> None:
    with pytest.raises(KernelError) as raised:
        linux.entries(Answers(answer, b""), 3)  # type: ignore[arg-type] # only `call` is used
    assert raised.value.errno is Errno.EIO


def test_a_short_answer_is_an_error() -> None:
    for ask in (lambda agent: linux.stat(agent, b"/"), lambda agent: linux.space(agent, b"/")):
        with pytest.raises(KernelError) as raised:
            ask(Answers(b"short"))
        assert raised.value.errno is Errno.EIO


def test_frames_that_no_agent_sends_are_refused() -> None:
    request = CommandRequest(("true",), {}, "/")
    command = GuestCommand(Answers(), request, 64)  # type: ignore[arg-type] # as above
    for kind in (*FromAgent, 77):
        if kind not in (FromAgent.HELLO, FromAgent.CALLED):
            command.on_frame(kind, b"")
    for _ in range(1000):  # more than its window
        command.on_frame(FromAgent.OUTPUT, struct.pack("<i", 1) + bytes(PIECE))
    taken = command.read()
    assert sum(len(output.data) for output in taken) < 15 * PIECE
    command.on_frame(FromAgent.TAKEN, struct.pack("<ii", 99, 1 << 30))
    command.on_frame(FromAgent.TAKEN, struct.pack("<ii", 0, 1 << 30))
    assert max(command._room.values()) <= PIECE
