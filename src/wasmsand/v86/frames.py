"""Frames of the channel between the host and the agent in the guest.

Owns their layout, which userland/v86/agent.c has too. A frame is a header (length of the payload,
id, kind) and the payload. Rules: numbers are little-endian; a length from the guest is checked
before anything is read.

    to the agent    CALL     a system call: see `call_payload`
                    RUN      start a command: see `run_payload`
                    INPUT    descriptor and bytes for a command; without bytes: the end
                    KILL     end every process of a command
                    WINDOW   descriptor, and how many more bytes of output the host takes
    from the agent  CALLED   result, and the content of the outputs
                    STARTED  pid or -errno, and whether the program or the directory is to blame
                    OUTPUT   descriptor and bytes
                    ENDED    wait status
                    TAKEN    descriptor, and how many bytes the command has read, or -1
                    HELLO    the agent is ready
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

HEADER: Final = struct.Struct("<IIB3x")
PIECE: Final = 65536
"""The window of each stream."""
FRAME_MAX: Final = 2359296
"""The longest payload that the agent takes."""
FROM_GUEST_MAX: Final = 8 * PIECE
"""The longest payload that the agent sends."""


class ToAgent(IntEnum):
    """Kinds of frames to the agent."""

    CALL = 1
    RUN = 2
    INPUT = 3
    KILL = 4
    WINDOW = 5


class FromAgent(IntEnum):
    """Kinds of frames from the agent."""

    CALLED = 1
    STARTED = 2
    OUTPUT = 3
    ENDED = 4
    TAKEN = 5
    HELLO = 6


class Room(NamedTuple):
    """An argument of a system call that the call fills."""

    size: int
    is_counted: bool = True
    """Whether the result says how many bytes are filled."""


Argument = int | bytes | Room


def frame(kind: ToAgent, identity: int, payload: bytes = b"") -> bytes:
    """A frame to the agent."""
    return HEADER.pack(len(payload), identity, kind) + payload


def call_payload(number: int, arguments: Sequence[Argument]) -> bytes:
    """A system call. The agent puts the addresses of inputs and outputs in their places."""
    words = [number]
    content = b""
    for argument in (*arguments, *([0] * (6 - len(arguments)))):
        if isinstance(argument, bytes):
            words += [1, len(argument)]
            content += argument
        elif isinstance(argument, Room):
            words += [3 if argument.is_counted else 2, argument.size]
        else:
            words += [0, argument & 0xFFFFFFFF]
    return struct.pack("<13I", *words) + content


def run_payload(
    user: tuple[int, int],
    max_open_files: int,
    cwd: bytes,
    argv: Sequence[bytes],
    environ: Sequence[bytes],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> bytes:
    """A command. No string contains a NUL."""
    counts = (len(argv), len(environ), len(inputs), len(outputs))
    head = struct.pack("<7I", *user, max_open_files, *counts)
    descriptors = struct.pack(f"<{len(inputs) + len(outputs)}I", *inputs, *outputs)
    return head + descriptors + b"".join(part + b"\0" for part in (cwd, *argv, *environ))
