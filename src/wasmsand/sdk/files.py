"""Files of a sandbox, from outside: `sandbox.files`.

Rules: paths are the guest's, unless an argument is called `host_...`; permissions do not bind
the host, and what it makes belongs to the sandbox's user; every failure is a `FileError` with
its errno and path.
"""

from __future__ import annotations

import builtins
import os
import posixpath
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.errors import FileError
from wasmsand.sdk.globbing import matcher
from wasmsand.sdk.results import FileInfo
from wasmsand.sdk.transfer import pack_directory, unpack_directory, unpack_file
from wasmsand.sdk.watching import FileWatch

CHUNK: Final = 1024 * 1024

GuestPath = str | os.PathLike[str]


class Files:
    """Read and write a sandbox's files without running a command.

    Example:
        sandbox.files.write("notes.txt", "hello")
        sandbox.files.read("notes.txt")

    A relative path starts at the sandbox's working directory.
    """

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment

    # Content.

    def read(self, path: GuestPath) -> bytes:
        """The whole content of a file, as it is at one moment.

        Example:
            sandbox.files.read("/etc/hostname")

        Raises `FileError` (EFBIG) for a file of holes that is larger than the sandbox's file
        system: read it with `read_stream`.
        """
        return self._attachment.backend.read_file(self._path(path))

    def read_text(self, path: GuestPath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The whole content of a file as text, decoded as `bytes.decode` does.

        Example:
            sandbox.files.read_text("notes.md")
        """
        return self.read(path).decode(encoding, errors)

    def read_stream(self, path: GuestPath, *, chunk_size: int = CHUNK) -> Iterator[bytes]:
        """The content of a file in pieces of `chunk_size` bytes, for one that is large.

        Example:
            with open("copy.bin", "wb") as copy:
                copy.writelines(sandbox.files.read_stream("large.bin"))

        A file that is written meanwhile may be seen half old and half new.
        """
        guest = self._path(path)
        size = arguments.positive_integer("chunk_size", chunk_size)
        # Here, not in the generator: a file that is not there is an error of this call.
        first = self._attachment.backend.read_file(guest, 0, size)
        return self._pieces(guest, first, size)

    def _pieces(self, guest: str, piece: bytes, size: int) -> Iterator[bytes]:
        offset = 0
        while piece:
            yield piece
            offset += len(piece)
            piece = self._attachment.backend.read_file(guest, offset, size)

    def write(self, path: GuestPath, data: bytes | str | BinaryIO) -> None:
        """Make or replace a file; missing directories are made.

        Example:
            sandbox.files.write("src/main.c", "int main(void) { return 0; }\\n")
            with open("photo.jpg", "rb") as photo:
                sandbox.files.write("photo.jpg", photo)

        Text is encoded as UTF-8; a binary file object is read to its end. A file that is
        there keeps its mode and owner. It is replaced in one step: whoever has it open goes
        on with the old content, and a failure leaves what was there.

        Raises `NoSpaceError`, and changes nothing, if it would not fit `fs_limit_bytes`.
        """
        guest = self._path(path)
        limit = self._attachment.options.fs_limit_bytes
        payload = arguments.content_or_file("data", data, limit)
        self._attachment.backend.write_file(guest, payload)

    def append(self, path: GuestPath, data: bytes | str) -> None:
        """Add to the end of a file, which is made if it is missing; all of `data` or nothing,
        unless a program writes to the same file meanwhile.

        Example:
            sandbox.files.append("log.txt", "one more line\\n")
        """
        guest = self._path(path)
        self._attachment.backend.append_file(guest, arguments.content("data", data))

    # Directories.

    def list(
        self, path: GuestPath = ".", *, recursive: bool = False, glob: str | None = None
    ) -> builtins.list[FileInfo]:
        """The entries of a directory, sorted by name, without `.` and `..`.

        Example:
            sandbox.files.list("src", recursive=True, glob="*.py")

        With `recursive` also all that is below; links to directories are not followed. `glob`
        chooses: a pattern without a slash is matched with names, one with a slash with paths
        below `path`; `*` and `?` stand for anything but a slash, `**` for any directories.
        """
        guest = self._path(path)
        wanted = None if glob is None else matcher(arguments.text("glob", glob))
        entries = self._attachment.backend.list_directory(guest, recursive=bool(recursive))
        if wanted is None:
            return entries
        start = len(guest.rstrip("/")) + 1
        return [entry for entry in entries if wanted(entry.path[start:])]

    def mkdir(self, path: GuestPath, *, parents: bool = True, exist_ok: bool = False) -> None:
        """Make a directory, and with `parents` those above it.

        Example:
            sandbox.files.mkdir("a/b/c")

        Raises `AlreadyExistsError` if the path exists; with `exist_ok` a directory may.
        """
        guest = self._path(path)
        backend = self._attachment.backend
        if parents and exist_ok:
            backend.make_directory(guest, parents=True)
            return
        if parents:
            backend.make_directory(posixpath.dirname(guest.rstrip("/")) or "/", parents=True)
        try:
            backend.make_directory(guest, parents=False)
        except FileError as error:
            if not (exist_ok and error.errno_name == "EEXIST") or self.stat(path).type != "dir":
                raise

    def rm(self, path: GuestPath, *, recursive: bool = False, missing_ok: bool = False) -> None:
        """Remove a file or an empty directory; with `recursive`, a directory with all it
        holds. With `missing_ok` it is no error if there is nothing.

        Example:
            sandbox.files.rm("build", recursive=True)
        """
        guest = self._path(path)
        try:
            self._attachment.backend.remove(guest, recursive=bool(recursive))
        except FileError as error:
            if not missing_ok or error.errno_name != "ENOENT":
                raise

    # Names.

    def rename(self, source: GuestPath, target: GuestPath) -> None:
        """Give a file or directory another path. A file, or an empty directory, that is at
        `target` is replaced.

        Example:
            sandbox.files.rename("draft.txt", "final.txt")
        """
        guest = self._path(source, "source")
        self._attachment.backend.rename(guest, self._path(target, "target"))

    def copy(self, source: GuestPath, target: GuestPath) -> None:
        """Copy a file, or a directory with all it holds, to the path `target`.

        Example:
            sandbox.files.copy("project", "backup/project")

        Modes are kept, links are copied as links, missing directories are made. A file at
        `target` is replaced; a directory there gets the entries of a directory `source`.
        """
        guest = self._path(source, "source")
        self._attachment.backend.copy(guest, self._path(target, "target"))

    def symlink(self, target: str, path: GuestPath) -> None:
        """Make `path` a symbolic link that holds `target`, which need not exist.

        Example:
            sandbox.files.symlink("releases/2", "current")
        """
        guest = self._path(path)
        self._attachment.backend.symlink(arguments.non_empty_text("target", target), guest)

    def readlink(self, path: GuestPath) -> str:
        """What a symbolic link holds. Raises `InvalidPathError` for anything else.

        Example:
            sandbox.files.readlink("current")
        """
        return self._attachment.backend.read_link(self._path(path))

    # Metadata.

    def stat(self, path: GuestPath, *, follow: bool = True) -> FileInfo:
        """What is at a path; symbolic links are followed, unless `follow` is false.

        Example:
            sandbox.files.stat("data.csv").size
        """
        return self._attachment.backend.stat(self._path(path), follow=bool(follow))

    def exists(self, path: GuestPath) -> bool:
        """Whether `stat` would find something.

        Example:
            sandbox.files.exists("data.csv")
        """
        try:
            self.stat(path)
        except FileError as error:
            if error.errno_name in ("ENOENT", "ENOTDIR", "ELOOP"):
                return False
            raise
        return True

    def chmod(self, path: GuestPath, mode: int) -> None:
        """Set the permission bits; a symbolic link is followed.

        Example:
            sandbox.files.chmod("run.sh", 0o755)
        """
        guest = self._path(path)
        self._attachment.backend.chmod(guest, arguments.file_mode("mode", mode))

    # Trees.

    def upload(self, host_path: str | os.PathLike[str], path: GuestPath) -> None:
        """Copy a file, or a directory with all it holds, of this machine to `path`.

        Example:
            sandbox.files.upload("../project", "project")

        Modes and times are kept, links are copied as links; what is there already is replaced
        file by file. Raises `OSError` for what cannot be read.
        """
        source = Path(arguments.host_path("host_path", host_path))
        guest = self._path(path)
        backend = self._attachment.backend
        if source.is_dir():
            backend.import_tar(guest, pack_directory(source))
            return
        with source.open("rb") as file:
            self.write(guest, file)
        backend.chmod(guest, source.stat().st_mode & 0o777)

    def download(self, path: GuestPath, host_path: str | os.PathLike[str]) -> builtins.list[str]:
        """Copy a file, or a directory with all it holds, to `host_path` of this machine.

        Example:
            sandbox.files.download("dist", "build/dist")

        Nothing is written outside `host_path`, whatever the sandbox holds. Returns what was
        left out: links that may lead outside, FIFOs, sockets and devices. Hard links and holes
        stay what they are. Raises `OSError` for what cannot be written.
        """
        target = Path(arguments.host_path("host_path", host_path))
        guest = self._path(path)
        info = self.stat(guest)
        if info.type == "dir":
            return unpack_directory(self._attachment.backend.export_tar(guest), target)
        if info.type == "file" and info.size:
            # As an archive: that leaves holes out.
            unpack_file(self._attachment.backend.export_tar(guest), target)
            return []
        pieces = self.read_stream(guest)  # of /proc, where files say that they are empty
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.writelines(pieces)
        return []

    def export_tar(self, path: GuestPath = ".") -> Iterator[bytes]:
        """A directory with all it holds, or one file, as pieces of a tar archive.

        Example:
            with open("home.tar", "wb") as archive:
                archive.writelines(sandbox.files.export_tar())

        Names in it are relative to `path`. It is not compressed. A file with several names is
        in it once, and large holes are not; nor is what is mounted below `path`, as `/proc`.
        """
        return self._attachment.backend.export_tar(self._path(path))

    def import_tar(
        self, archive: bytes | BinaryIO | Iterable[bytes], path: GuestPath = "."
    ) -> None:
        """Unpack a tar archive, plain or compressed by gzip, below a directory, which is made.

        Example:
            with open("home.tar.gz", "rb") as archive:
                sandbox.files.import_tar(archive, "restored")

        Nothing is written outside `path`. Files that are there are replaced. Raises
        `ArchiveError` for what is no archive; what was unpacked before stays.
        """
        guest = self._path(path)
        pieces = arguments.byte_pieces("archive", archive)
        self._attachment.backend.import_tar(guest, pieces)

    def watch(
        self, path: GuestPath = ".", *, recursive: bool = True, interval_ms: float = 100
    ) -> FileWatch:
        """Changes to a file, or below a directory, from now on.

        Example:
            with sandbox.files.watch("src") as watch:
                sandbox.commands.run("touch src/new.py")
                watch.poll()  # the event that src/new.py was created

        `poll` does not wait; iterating does, and looks every `interval_ms`.
        """
        interval = arguments.timeout_seconds("interval_ms", interval_ms)
        if interval is None:
            raise TypeError("interval_ms must be a number of milliseconds, not None")
        return FileWatch(self._attachment, self._path(path), bool(recursive), interval)

    def _path(self, path: object, name: str = "path") -> str:
        self._attachment.check_open()
        return arguments.guest_path(name, path, self._attachment.cwd)

    def __repr__(self) -> str:
        return f"<Files of {self._attachment!r}>"
