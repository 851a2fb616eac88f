"""Types of JSON requests and responses about files.

Rules: those of `messages`.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from wasmsand.http.message_types import Path, RequestMessage, ResponseMessage
from wasmsand.sdk.results import FileInfo


class FilePath(RequestMessage):
    """One file."""

    path: Path


class ReadFile(FilePath):
    """A file, or part of it."""

    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    count: Annotated[int, Meta(ge=0, le=2**53)] | None = None


class WriteFile(FilePath):
    """The file to write the body to."""

    mode: Annotated[int, Meta(ge=0, le=0o7777)] | None = None
    """Permission bits as a decimal number; null keeps the mode of an existing file."""


class NewFile(FilePath):
    """A file and its content: `text`, or `base64`."""

    text: str | None = None
    base64: bytes | None = None
    mode: Annotated[int, Meta(ge=0, le=0o7777)] | None = None
    """Permission bits as a decimal number; null keeps the mode of an existing file."""


class WriteFiles(RequestMessage):
    """Files to write together."""

    files: Annotated[list[NewFile], Meta(max_length=100_000)]


class StatFile(FilePath):
    """One file or link."""

    follow: bool = True


class ListDirectory(RequestMessage):
    """One directory."""

    path: Path = "."
    recursive: bool = False


class FileList(ResponseMessage):
    """Entries of a directory."""

    entries: list[FileInfo]


class RemoveFile(FilePath):
    """What to remove."""

    recursive: bool = False


class MakeDirectory(FilePath):
    """A directory. With `parents`, create its parents too, and accept an existing one."""

    parents: bool = True


class TwoPaths(RequestMessage):
    """A source and a target."""

    source: Path
    target: Path


class ChangeMode(FilePath):
    """Permission bits as a decimal number."""

    mode: Annotated[int, Meta(ge=0, le=0o7777)]


class MakeLink(FilePath):
    """A symbolic link at `path` that points to `target`."""

    target: str


class LinkTarget(ResponseMessage):
    """The target of a symbolic link."""

    target: str
