"""Checks wheels and unpacks them.

Owns which wheels are accepted, and where their files go. Rules: a wheel of an index is hostile: a
name is a plain relative path, sizes and counts are bounded before and while content is read, links
and encrypted members are refused, and no code of the wheel runs. A wheel with native code is
refused. Every defect raises `BadWheel`.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from wasmsand.kernel.flags import S_IFDIR, S_IFMT, S_IFREG
from wasmsand.machine.packages.links import WHEEL_SCRIPTS
from wasmsand.machine.packages.metadata import (
    METADATA_BYTES_MAX,
    BadMetadata,
    PackageMetadata,
    normalised,
    parse_metadata,
)

MEMBERS_MAX: Final = 50_000
UNPACKED_BYTES_MAX: Final = 1 << 30
_NAME_MAX: Final = 255
_PATH_MAX: Final = 1024
_PIECE: Final = 1 << 20
_ENCRYPTED: Final = 1
_ZIP_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)
"""What the reader of zip files raises for invalid files."""
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SCRIPT_START: Final = b"#!python"
_INTERPRETER: Final = b"#!/usr/bin/python3"
_DIST_INFO: Final = ".dist-info"
_DATA: Final = ".data"


class BadWheel(Exception):
    """A wheel is invalid, hostile, or has native code."""


@dataclass(frozen=True, slots=True)
class WheelMember:
    """One file of a wheel, and its path in the package's directory."""

    path: str
    mode: int
    size: int
    info: zipfile.ZipInfo
    is_script: bool = False


class Wheel:
    """An open wheel whose list of members has been checked."""

    def __init__(self, file: Path) -> None:
        """Raises `BadWheel`."""
        try:
            self._zip = zipfile.ZipFile(file)
        except _ZIP_ERRORS as error:
            raise BadWheel(f"not a wheel: {error}") from None
        try:
            self._infos = _checked(self._zip.infolist())
            self._dist_info = _dist_info(self._infos)
            self.metadata = self._metadata()
            self._check_is_pure()
            self.members = tuple(self._placed())
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Wheel:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    def write(self, member: WheelMember, out: IO[bytes]) -> int:
        """Write a member's content; returns its size. Raises `BadWheel` if its size is not the
        announced one."""
        written = 0
        for piece in self._pieces(member.info):
            if not written and member.is_script and piece.startswith(_SCRIPT_START):
                piece = _INTERPRETER + piece[len(piece.partition(b"\n")[0]) :]
            written += len(piece)
            if written > member.size + len(_INTERPRETER):
                raise BadWheel(f"{member.path!r} is larger than announced")
            out.write(piece)
        return written

    def _pieces(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        """The content of a member."""
        try:
            with self._zip.open(info) as stream:
                while piece := stream.read(_PIECE):
                    yield piece
        except _ZIP_ERRORS as bad:
            raise BadWheel(f"{info.filename!r} cannot be read: {bad}") from None

    def _read(self, name: str) -> bytes:
        """A small file of the dist-info directory; empty if there is none."""
        for info in self._infos:
            if info.filename == f"{self._dist_info}/{name}":
                if info.file_size > METADATA_BYTES_MAX:
                    raise BadWheel(f"{name} has more than {METADATA_BYTES_MAX} bytes")
                return b"".join(self._pieces(info))[:METADATA_BYTES_MAX]
        return b""

    def _metadata(self) -> PackageMetadata:
        try:
            metadata = parse_metadata(self._read("METADATA"), self._read("entry_points.txt"))
        except BadMetadata as bad:
            raise BadWheel(str(bad)) from None
        name, _, version = self._dist_info.removesuffix(_DIST_INFO).rpartition("-")
        if (normalised(name), version.replace("_", "-")) != (
            metadata.key,
            metadata.version.replace("_", "-"),
        ):
            raise BadWheel(
                f"its directory is {self._dist_info!r}, but its metadata names {metadata.name!r} "
                f"{metadata.version!r}"
            )
        return metadata

    def _check_is_pure(self) -> None:
        lines = self._read("WHEEL").decode("utf-8", "replace").splitlines()
        fields = [line.partition(":") for line in lines]
        tags = [value.strip() for field, _, value in fields if field.strip() == "Tag"]
        if not tags or not all(tag.endswith("-none-any") for tag in tags):
            raise BadWheel(f"it has native code (tags: {', '.join(tags[:5]) or 'none'})")

    def _placed(self) -> Iterator[WheelMember]:
        data = self._dist_info.removesuffix(_DIST_INFO) + _DATA + "/"
        seen: set[str] = set()
        for info in self._infos:
            if info.is_dir():
                continue
            path, is_script = info.filename, False
            if path.startswith(data):
                scheme, _, rest = path.removeprefix(data).partition("/")
                if scheme in ("purelib", "platlib"):
                    path = rest
                elif scheme == "scripts" and "/" not in rest:
                    path, is_script = f"{self._dist_info}/{WHEEL_SCRIPTS.decode()}/{rest}", True
                else:
                    continue  # headers and data belong elsewhere
            if not path or path in seen:
                raise BadWheel(f"two files have the path {path!r}")
            seen.add(path)
            is_program = is_script or bool(info.external_attr >> 16 & 0o100)
            mode = 0o755 if is_program else 0o644
            yield WheelMember(path, mode, info.file_size, info, is_script)
        parents = {path.rpartition("/")[0] for path in seen}
        while parents:
            if clash := parents & seen:
                raise BadWheel(f"{clash.pop()!r} is a file and a directory")
            parents = {path.rpartition("/")[0] for path in parents} - {""}


def _checked(infos: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    if len(infos) > MEMBERS_MAX:
        raise BadWheel(f"it has {len(infos)} files; at most {MEMBERS_MAX} are allowed")
    total = 0
    for info in infos:
        _check_name(info.filename.removesuffix("/"))
        kind = info.external_attr >> 16 & S_IFMT
        if kind not in (0, S_IFREG, S_IFDIR):
            raise BadWheel(f"{info.filename!r} is not a regular file")
        if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
            raise BadWheel(f"{info.filename!r} is encrypted, or compressed in an unusual way")
        total += info.file_size
    if total > UNPACKED_BYTES_MAX:
        raise BadWheel(f"its files have {total} bytes; at most {UNPACKED_BYTES_MAX} are allowed")
    return infos


def _check_name(name: str) -> None:
    parts = name.split("/")
    try:
        encoded = name.encode("utf-8")
    except UnicodeEncodeError:
        raise BadWheel(f"{name!r} is not a plain relative path") from None
    if (
        {"", ".", ".."} & set(parts)
        or "\\" in name
        or ":" in parts[0]
        or not name.isprintable()
        or len(encoded) > _PATH_MAX
        or any(len(part.encode("utf-8")) > _NAME_MAX for part in parts)
    ):
        raise BadWheel(f"{name[:200]!r} is not a plain relative path")


def _dist_info(infos: list[zipfile.ZipInfo]) -> str:
    tops = {info.filename.partition("/")[0] for info in infos}
    found = [top for top in tops if top.endswith(_DIST_INFO)]
    if len(found) != 1:
        raise BadWheel(f"it has {len(found)} directories with metadata instead of one")
    return found[0]
