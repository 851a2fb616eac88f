"""Disk images of a v86 machine: what the user has changed, in one file.

Owns their format: a line that names it, the sha256 of the rest, and a tar archive of the upper
layer of the guest's overlay file system. In the archive a removed file is a character device 0:0,
and a directory that hides one of the original files has the attribute trusted.overlay.opaque, as
in the kernel's overlay format.

Rules: a disk image is not trusted. It is complete and unchanged, or refused; its names are plain
and relative; it is unpacked inside the guest, and nothing of it is written on the host.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
import weakref
from collections.abc import Iterator
from typing import IO, Final

from wasmsand.sdk.errors import DiskImageError

MAGIC: Final = b"wasmsand v86 disk image 1\n"
_PIECE: Final = 1 << 20
_OPAQUE: Final = "SCHILY.xattr.trusted.overlay.opaque"
UPPER: Final = "/run/scratch/upper"
SAVE_COMMAND: Final = (
    "tar",
    "--create",
    "--format=pax",
    "--numeric-owner",
    "--sparse",
    "--xattrs",
    "--xattrs-include=user.*",
    "--xattrs-include=trusted.overlay.opaque",
    f"--directory={UPPER}",
    "--file=-",
    ".",
)
LEFT_OUT_FILE: Final = "/run/left-out"
REMOVE_COMMAND: Final = ("xargs", "-0", "-r", "rm", "-rf", "--")
LOAD_COMMAND: Final = (
    "tar",
    "--extract",
    "--numeric-owner",
    "--same-owner",
    "--preserve-permissions",
    "--xattrs",
    "--xattrs-include=user.*",
    "--no-wildcards",
    "--anchored",
    f"--exclude-from={LEFT_OUT_FILE}",
    "--keep-directory-symlink",
    "--directory=/",
    "--file=-",
)


def write_image(stream: IO[bytes], archive: Iterator[bytes]) -> None:
    """Write a disk image to a seekable stream, whose position is its beginning."""
    start = stream.tell()
    total = hashlib.sha256()
    stream.write(MAGIC + bytes(total.digest_size))
    for piece in archive:
        total.update(piece)
        stream.write(piece)
    end = stream.tell()
    stream.seek(start + len(MAGIC))
    stream.write(total.digest())
    stream.seek(end)


class LoadedImage:
    """A disk image that was checked, and is kept for machines that are started later."""

    def __init__(self, stream: IO[bytes], most_bytes: int) -> None:
        """Raises `DiskImageError`."""
        if stream.read(len(MAGIC)) != MAGIC:
            raise DiskImageError("not a disk image of v86 mode")
        expected = stream.read(hashlib.sha256().digest_size)
        total, size = hashlib.sha256(), 0
        # The file stays open, because machines that are started later need it.
        self._archive = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._archive.close)
        while piece := stream.read(_PIECE):
            size += len(piece)
            if size > 2 * most_bytes:
                raise DiskImageError("the disk image does not fit; raise fs_limit_bytes")
            total.update(piece)
            self._archive.write(piece)
        if total.digest() != expected:
            raise DiskImageError("not a disk image: it is damaged or cut short")
        self._whiteouts: list[bytes] = []
        self._replaced: list[bytes] = []
        self._check()

    def _check(self) -> None:
        self._archive.seek(0)
        try:
            with tarfile.open(fileobj=self._archive, mode="r:") as archive:
                for member in archive:
                    parts = member.name.split("/")
                    if member.name.startswith("/") or ".." in parts or "\0" in member.name:
                        raise DiskImageError(f"not a disk image: bad name {member.name!r}")
                    is_whiteout = member.ischr() and (member.devmajor, member.devminor) == (0, 0)
                    name = member.name.removeprefix("./").encode("utf-8", "surrogateescape")
                    if is_whiteout:
                        self._whiteouts.append(name)
                    elif not member.isdir() or member.pax_headers.get(_OPAQUE) == "y":
                        self._replaced.append(name)
        except (tarfile.TarError, ValueError, OSError) as error:
            raise DiskImageError(f"not a disk image: {error}") from None

    def removed(self) -> bytes:
        """The paths to remove before unpacking, each with a NUL."""
        return b"".join(b"/" + name + b"\0" for name in (*self._whiteouts, *self._replaced))

    def left_out(self) -> bytes:
        """The names that stand for removed files, one per line, for tar's `--exclude-from`."""
        return b"".join(b"./" + name + b"\n" for name in self._whiteouts)

    def pieces(self) -> Iterator[bytes]:
        """The archive."""
        self._archive.seek(0)
        while piece := self._archive.read(_PIECE):
            yield piece
