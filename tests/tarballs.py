"""Tar archives made by Python's `tarfile`, for tests that read them."""

from __future__ import annotations

import io
import tarfile


def tar_archive(*members: tuple[tarfile.TarInfo, bytes], kind: int = tarfile.PAX_FORMAT) -> bytes:
    """An archive with these members and their contents, in one of `tarfile`'s formats."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind) as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mtime = kind, link, 1_234_567_890
    return info


def with_records(name: str, **records: str) -> tarfile.TarInfo:
    """A member with extended (pax) records; a `__` in a key stands for a dot."""
    info = member(name)
    info.pax_headers = {key.replace("__", "."): value for key, value in records.items()}
    return info
