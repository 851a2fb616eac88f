"""Untrusted archives: `import_tar` and disk images.

An input is a byte, which says how the archive is compressed, and a tar archive. Rules: the
archive is unpacked, or refused with a `KernelError` (a disk image with `DiskImageRejected`);
everything unpacked can be listed, exported and removed, and then the space is free again.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from fuzz.machines import new_machine
from fuzz.mutation import mutated
from fuzz.target import Finding, Source, Target
from wasmsand.kernel.errno import KernelError
from wasmsand.machine import (
    DiskImageRejected,
    Machine,
    export_tar,
    import_tar,
    read_disk_image,
    write_disk_image,
)

_BLOCK: Final = tarfile.BLOCKSIZE
_PACKED: Final = 1
_MOST_EXPORTED: Final = 64 << 20
_TYPES: Final = b"0123456789xgLKSD\0V"
_PAX: Final = (
    b"path", b"linkpath", b"size", b"mtime", b"atime", b"uid", b"gid", b"uname", b"hdrcharset",
    b"GNU.sparse.major", b"GNU.sparse.minor", b"GNU.sparse.name", b"GNU.sparse.realsize",
    b"GNU.sparse.size", b"GNU.sparse.map", b"GNU.sparse.numblocks", b"GNU.sparse.offset",
    b"WASMSAND.disk", b"WASMSAND.removed", b"WASMSAND.end", b"SCHILY.xattr.a",
)  # fmt: skip
_VALUES: Final = (
    b"", b"0", b"1", b"-1", b"1e999", b"nan", b"inf", b"9" * 20, b"9" * 5000, b"a\0b", b"../x",
    b"/abs", b"a/b/c", b"x" * 300, b"BINARY", b"\xff\xfe", b"1.5", b"0,512", b"0,1,9999999999,1",
    b"1e308", b"-9999999999999", b"a/" * 200, b".", b"..", b"tmp", b"etc/passwd",
)  # fmt: skip


def _octal(field: bytearray) -> int:
    try:
        return max(0, int(field.split(b"\0")[0].strip() or b"0", 8))
    except ValueError:
        return 0


def sealed(data: bytes) -> bytes:
    """`data` with correct header checksums; a wrong one would hide all that follows."""
    tar = bytearray(data)
    place = 0
    while place + _BLOCK <= len(tar):
        header = tar[place : place + _BLOCK]
        if any(header):
            total = sum(header[:148]) + 256 + sum(header[156:])
            tar[place + 148 : place + 156] = b"%06o\0 " % total
            place += -(-_octal(header[124:136]) // _BLOCK) * _BLOCK
        place += _BLOCK
    return bytes(tar)


def _pax(random: Random) -> bytes:
    """A pax header with a few records, some of them invalid."""
    records = b""
    for _ in range(1 + random.randrange(3)):
        record = random.choice(_PAX) + b"=" + random.choice(_VALUES) + b"\n"
        length = len(record) + 2
        length += len(str(length)) - 1
        length += random.choice((0, 0, 0, 0, 1, -3, 10**9))
        records += b"%d " % length + record
    info = tarfile.TarInfo("x")
    info.type = random.choice((tarfile.XHDTYPE, tarfile.XGLTYPE))
    info.size = len(records)
    return info.tobuf(tarfile.USTAR_FORMAT) + records + bytes(-len(records) % _BLOCK)


def _member(random: Random) -> bytes:
    info = tarfile.TarInfo(random.choice(_VALUES).decode("latin-1")[:90])
    info.type = bytes([random.choice(_TYPES)])
    info.linkname = random.choice(_VALUES).decode("latin-1")[:90]
    info.mode = random.choice((0, 0o644, 0o7777))
    body = random.randbytes(random.choice((0, 0, 5, 512, 700)))
    info.size = random.choice((len(body), len(body), 0, 2**33 - 1))
    header = info.tobuf(tarfile.GNU_FORMAT, "latin-1", "replace")
    return header + body + bytes(-len(body) % _BLOCK)


def changed_tar(random: Random, data: bytes, other: bytes) -> bytes:
    """A new archive made from two."""
    flag, tar = data[:1] or b"\0", data[1:]
    blocks = len(tar) // _BLOCK
    for _ in range(1 + random.randrange(3)):
        place = random.randrange(blocks + 1) * _BLOCK
        match random.randrange(6):
            case 0:
                tar = tar[:place] + _pax(random) + tar[place:]
            case 1:
                tar = tar[:place] + _member(random) + tar[place:]
            case 2:
                start = 1 + random.randrange(len(other) // _BLOCK + 1) * _BLOCK
                tar = tar[:place] + other[start : start + 4 * _BLOCK] + tar[place:]
            case 3:
                tar = tar[:place] + tar[place + _BLOCK * (1 + random.randrange(3)) :]
            case 4:
                inside = tar[place : place + _BLOCK]
                tar = tar[:place] + mutated(random, inside, other, _VALUES) + tar[place + _BLOCK :]
            case _:
                flag = bytes([random.randrange(4)])
    return flag + (sealed(tar) if random.randrange(8) else tar)


def _archive(*members: tuple[str, bytes, str, bytes], pax: dict[str, str] | None = None) -> bytes:
    """An archive of members, each given as (name, type, link, content)."""
    stream = io.BytesIO()
    with tarfile.open(
        fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, pax_headers=pax or {}
    ) as tar:
        for name, kind, link, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(content)
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


_TREE: Final = (
    ("d", tarfile.DIRTYPE, "", b""),
    ("d/f", tarfile.REGTYPE, "", b"content" * 100),
    ("d/link", tarfile.SYMTYPE, "f", b""),
    ("d/hard", tarfile.LNKTYPE, "d/f", b""),
    ("d/fifo", tarfile.FIFOTYPE, "", b""),
    ("d/" + "n" * 150, tarfile.REGTYPE, "", b""),
)


class _Tars(Target):
    memory_bytes = 96 << 20

    def mutate(self, random: Random, data: bytes, other: bytes) -> bytes:
        return changed_tar(random, data, other)


class Archives(_Tars):
    """`import_tar`."""

    name = "archives"
    about = "archives that are unpacked in a sandbox"

    def seeds(self) -> Iterable[bytes]:
        tree = _archive(*_TREE)
        yield b"\0" + tree
        yield b"\1" + tree
        yield b"\0" + _archive(("/abs", tarfile.REGTYPE, "", b"x"), ("../up", b"0", "", b"x"))
        yield b"\0" + _archive(("a", tarfile.SYMTYPE, "/etc", b""), ("a/passwd", b"0", "", b"x"))
        random = Random(1)
        for _ in range(10):
            yield b"\0" + sealed(_pax(random) + _member(random)) + bytes(2 * _BLOCK)

    def run(self, data: bytes) -> None:
        source = Source(data)
        flags = source.byte()
        tar = data[1:]
        if flags & _PACKED:
            tar = gzip.compress(tar, 1)
        step = 100 if flags & 2 else 65536
        pieces = (tar[place : place + step] for place in range(0, len(tar), step))
        machine = new_machine()
        try:
            _unpack_and_remove(machine, pieces)
        finally:
            machine.close()


def _unpack_and_remove(machine: Machine, pieces: Iterator[bytes]) -> None:
    space = machine.kernel.root.space
    before = space.used_bytes, space.used_inodes
    outside = [entry.path for entry in machine.files.tree("/tmp")]
    try:
        import_tar(machine, "/home/user/in", pieces)
    except KernelError:
        pass
    for entry in machine.files.tree("/home/user/in"):
        if entry.type == "file" and entry.size < 1 << 20:
            machine.files.read(entry.path)
    exported = 0
    try:
        for piece in export_tar(machine, "/home/user/in"):
            exported += len(piece)
            if exported > _MOST_EXPORTED:
                raise Finding(
                    "large-export",
                    f"8 MiB of files were exported as more than {_MOST_EXPORTED} bytes",
                )
    except KernelError:
        pass
    machine.files.remove("/home/user/in", recursive=True)
    after = space.used_bytes, space.used_inodes
    if after != before:
        raise Finding(
            "space", f"(bytes, inodes) in use: {before} before, {after} after the removal"
        )
    if [entry.path for entry in machine.files.tree("/tmp")] != outside:
        raise Finding("escape", "the archive created files outside the directory")


class DiskImages(_Tars):
    """`read_disk_image`."""

    name = "disks"
    about = "disk images that a sandbox starts from"

    def seeds(self) -> Iterable[bytes]:
        machine = new_machine()
        files = machine.files
        files.write("/tmp/f", b"content" * 200)
        files.mkdir("/tmp/d/e")
        files.symlink("../f", "/tmp/d/link")
        files.remove("/etc/hosts")
        yield b"\0" + _saved(machine)
        with machine.lock:
            root = machine.kernel.namespace
            node = root.resolve(machine.identity.credentials(), root.root, b"/tmp/f")
            root.resize(machine.identity.credentials(), node, 1 << 40)
        yield b"\0" + _saved(machine)
        machine.close()
        disk = {"WASMSAND.disk": "1"}
        inside = tuple(("tmp/" + name, *rest) for name, *rest in _TREE[:1])
        yield b"\0" + _archive(*inside, pax=disk)  # type: ignore[arg-type]
        random = Random(2)
        for _ in range(10):
            begin = _archive(pax=disk)[: 2 * _BLOCK]
            yield b"\0" + sealed(begin + _pax(random) + _member(random)) + bytes(2 * _BLOCK)

    def run(self, data: bytes) -> None:
        machine = new_machine()
        try:
            try:
                read_disk_image(machine, io.BytesIO(data[1:]))
            except DiskImageRejected:
                pass
            _saved(machine)
            files = machine.files
            for entry in files.list("/tmp"):
                files.remove(entry.path, recursive=True)
            files.write("/tmp/still-usable", b"")
        except KernelError as error:
            if error.errno.name not in ("ENOSPC", "ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"):
                raise  # the image may have removed /tmp, or filled the disk
        finally:
            machine.close()


def _saved(machine: Machine) -> bytes:
    stream = io.BytesIO()
    write_disk_image(machine, stream)
    return stream.getvalue()
