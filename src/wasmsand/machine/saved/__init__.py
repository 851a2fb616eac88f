"""Machines in files: a state at rest, with the memory of its sessions, as one stream of bytes.

Layout, lowest first (each imports only from those above it):

    problems      why a file is refused
    compression   zstd or zlib, with bounded output
    framing       the frame of a file: magic, version, header, chunks, digest
    checked       reading decoded JSON field by field
    processes     captured processes as plain values
    base          what a file needs: the image and its programs
    writing       a state to a stream
    reading       a stream to a state

Rules: a file is read as if a guest had written it. Nothing in it grants access to the host: limits,
network and host directories come from whoever loads the file.
"""

from wasmsand.machine.saved.base import BaseImage, base_for
from wasmsand.machine.saved.problems import (
    NewerVersion,
    OtherImage,
    StateRejected,
    TooLarge,
)
from wasmsand.machine.saved.reading import SavedMachine
from wasmsand.machine.saved.writing import write_machine

__all__ = [
    "BaseImage",
    "NewerVersion",
    "OtherImage",
    "SavedMachine",
    "StateRejected",
    "TooLarge",
    "base_for",
    "write_machine",
]
