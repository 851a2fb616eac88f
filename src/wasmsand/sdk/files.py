"""Host-side access to a sandbox's files: `sandbox.files`.

Rules: paths are paths in the sandbox, unless an argument is called `host_...`; permissions do not
restrict the host, and files that it creates belong to the sandbox's user; every failure is a
`FileError` with its errno and path.
"""

from __future__ import annotations

import builtins
import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import FileWrite
from wasmsand.sdk.errors import FileError, no_space
from wasmsand.sdk.globbing import matcher
from wasmsand.sdk.results import FileInfo
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
        """Return the whole content of a file, as it is at one moment.

        Example:
            sandbox.files.read("/etc/hostname")

        Raises `FileError` (EFBIG) for a sparse file that is larger than the sandbox's file
        system: read it with `read_stream`.
        """
        return self._attachment.backend.read_file(self._path(path))

    def read_text(self, path: GuestPath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the whole content of a file as text, decoded as with `bytes.decode`.

        Example:
            sandbox.files.read_text("notes.md")
        """
        return self.read(path).decode(encoding, errors)

    def read_stream(self, path: GuestPath, *, chunk_size: int = CHUNK) -> Iterator[bytes]:
        """Yield the content of a large file in pieces of `chunk_size` bytes.

        Example:
            with open("copy.bin", "wb") as copy:
                copy.writelines(sandbox.files.read_stream("large.bin"))

        If the file changes meanwhile, old and new content may be mixed.
        """
        guest = self._path(path)
        size = arguments.positive_integer("chunk_size", chunk_size)
        # Not in the generator, so that this call raises the error for a missing file.
        first = self._attachment.backend.read_file(guest, 0, size)
        return self._pieces(guest, first, size)

    def _pieces(self, guest: str, piece: bytes, size: int) -> Iterator[bytes]:
        offset = 0
        while piece:
            yield piece
            offset += len(piece)
            piece = self._attachment.backend.read_file(guest, offset, size)

    def write(
        self, path: GuestPath, data: bytes | str | BinaryIO, *, mode: int | None = None
    ) -> None:
        """Create or replace a file, and create missing directories.

        Example:
            sandbox.files.write("src/main.c", "int main(void) { return 0; }\\n")
            with open("photo.jpg", "rb") as photo:
                sandbox.files.write("photo.jpg", photo)

        Text is encoded as UTF-8; a binary file object is read to its end. `mode` are the permission
        bits, such as 0o755; without it a new file has 0o644, and an existing one keeps its own. An
        existing file keeps its owner. It is replaced atomically: programs that have it open keep
        the old content, and after a failure the old file remains.

        Raises `NoSpaceError`, and changes nothing, if the file does not fit into `fs_limit_bytes`.
        """
        guest = self._path(path)
        limit = self._attachment.options.fs_limit_bytes
        payload = arguments.content_or_file("data", data, limit)
        bits = None if mode is None else arguments.file_mode("mode", mode)
        self._attachment.backend.write_file(guest, payload, mode=bits)

    def write_many(
        self,
        files: Mapping[str, bytes | str],
        *,
        mode: int | None = None,
    ) -> None:
        """Create or replace several files, and create missing directories, in one request.

        Example:
            sandbox.files.write_many({"src/a.py": "A = 1\\n", "src/b.py": "B = 2\\n"})

        Either all files are written or none: if one cannot be written, those written before get
        their old content back, and the exception names the file. Programs that run meanwhile may
        see some of the new files before the others. `mode` is that of `write`, for all files.
        """
        self._attachment.check_open()
        options = self._attachment.options
        bits = None if mode is None else arguments.file_mode("mode", mode)
        wanted, room = [], options.fs_limit_bytes
        for path, data in arguments.mapping("files", files).items():
            guest, payload = self._path(path), arguments.content("data", data)
            room -= len(payload)
            if room < 0:
                raise no_space(guest, options.fs_limit_bytes)
            wanted.append(FileWrite(guest, payload, bits))
        self._attachment.backend.write_files(wanted)

    def append(self, path: GuestPath, data: bytes | str) -> None:
        """Append to a file, which is created if it does not exist. Either all of `data` is
        appended or nothing, unless a program writes to the same file meanwhile.

        Example:
            sandbox.files.append("log.txt", "one more line\\n")
        """
        guest = self._path(path)
        self._attachment.backend.append_file(guest, arguments.content("data", data))

    # Directories.

    def list(
        self, path: GuestPath = ".", *, recursive: bool = False, glob: str | None = None
    ) -> builtins.list[FileInfo]:
        """List the entries of a directory, sorted by name, without `.` and `..`.

        Example:
            sandbox.files.list("src", recursive=True, glob="*.py")

        With `recursive`, the list contains everything below the directory; links to directories
        are not followed. `glob` selects entries: a pattern without a slash is compared with names,
        one with a slash with paths below `path`. `*` and `?` match anything except a slash, `**`
        matches any number of directories.
        """
        guest = self._path(path)
        wanted = None if glob is None else matcher(arguments.text("glob", glob))
        entries = self._attachment.backend.list_directory(guest, recursive=bool(recursive))
        if wanted is None:
            return entries
        start = len(guest.rstrip("/")) + 1
        return [entry for entry in entries if wanted(entry.path[start:])]

    def mkdir(self, path: GuestPath, *, parents: bool = True, exist_ok: bool = False) -> None:
        """Create a directory, and with `parents` also the missing directories above it.

        Example:
            sandbox.files.mkdir("a/b/c")

        Raises `AlreadyExistsError` if the path exists; with `exist_ok`, an existing directory is
        not an error.
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
        """Remove a file or an empty directory; with `recursive`, a directory with everything
        below it. With `missing_ok`, a path that does not exist is not an error.

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
        """Rename or move a file or directory. A file or an empty directory at `target` is
        replaced.

        Example:
            sandbox.files.rename("draft.txt", "final.txt")
        """
        guest = self._path(source, "source")
        self._attachment.backend.rename(guest, self._path(target, "target"))

    def copy(self, source: GuestPath, target: GuestPath) -> None:
        """Copy a file, or a directory with everything below it, to the path `target`.

        Example:
            sandbox.files.copy("project", "backup/project")

        Modes are kept, links are copied as links, and missing directories are created. A file at
        `target` is replaced. If `source` and `target` are directories, the entries of `source` are
        copied into `target`.
        """
        guest = self._path(source, "source")
        self._attachment.backend.copy(guest, self._path(target, "target"))

    def symlink(self, target: str, path: GuestPath) -> None:
        """Create the symbolic link `path` to `target`, which need not exist.

        Example:
            sandbox.files.symlink("releases/2", "current")
        """
        guest = self._path(path)
        self._attachment.backend.symlink(arguments.non_empty_text("target", target), guest)

    def readlink(self, path: GuestPath) -> str:
        """Return the target of a symbolic link. Raises `InvalidPathError` for any other file.

        Example:
            sandbox.files.readlink("current")
        """
        return self._attachment.backend.read_link(self._path(path))

    # Metadata.

    def stat(self, path: GuestPath, *, follow: bool = True) -> FileInfo:
        """Describe the file at a path. Symbolic links are followed unless `follow` is false.

        Example:
            sandbox.files.stat("data.csv").size
        """
        return self._attachment.backend.stat(self._path(path), follow=bool(follow))

    def exists(self, path: GuestPath) -> bool:
        """Return whether `stat` would succeed.

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

    def upload(
        self,
        host_path: str | os.PathLike[str],
        path: GuestPath,
        *,
        exclude: Iterable[str] = (),
        gitignore: bool = False,
    ) -> None:
        """Copy a file, or a directory with everything below it, from this machine to `path`.

        Example:
            sandbox.files.upload("../project", "project", exclude=[".git"], gitignore=True)

        `exclude` are patterns of files that are left out, in the syntax of `.gitignore` files. With
        `gitignore`, the `.gitignore` files of the directory and of its repository apply too. Modes
        and times are kept, and links are copied as links.

        Raises `OSError` for a file that cannot be read, and `NoSpaceError` if the files do not fit,
        before anything is copied. A directory that is new in the sandbox appears complete or not at
        all; in an existing one, files are replaced one by one.
        """
        from wasmsand.sdk.ignoring import IgnoreRules  # only whole trees need archives
        from wasmsand.sdk.uploading import upload_directory

        source = Path(arguments.host_path("host_path", host_path))
        guest = self._path(path)
        excluded = IgnoreRules().with_lines(arguments.patterns("exclude", exclude))
        if source.is_dir():
            backend = self._attachment.backend
            upload_directory(backend, source, guest, excluded, gitignore=bool(gitignore))
            return
        with source.open("rb") as file:
            self.write(guest, file, mode=source.stat().st_mode & 0o777)

    def download(self, path: GuestPath, host_path: str | os.PathLike[str]) -> builtins.list[str]:
        """Copy a file, or a directory with everything below it, to `host_path` on this machine.

        Example:
            sandbox.files.download("dist", "build/dist")

        Nothing is written outside `host_path`, whatever the sandbox contains. Returns the names
        that were left out: links that may lead outside, FIFOs, sockets and devices. Hard links and
        holes are kept. Raises `OSError` for a file that cannot be written.
        """
        from wasmsand.sdk.transfer import unpack_directory, unpack_file

        target = Path(arguments.host_path("host_path", host_path))
        guest = self._path(path)
        info = self.stat(guest)
        if info.type == "dir":
            return unpack_directory(self._attachment.backend.export_tar(guest), target)
        if info.type == "file" and info.size:
            # As an archive, which leaves holes out.
            unpack_file(self._attachment.backend.export_tar(guest), target)
            return []
        pieces = self.read_stream(guest)  # a file of /proc reports the size 0
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.writelines(pieces)
        return []

    def export_tar(self, path: GuestPath = ".") -> Iterator[bytes]:
        """Yield a directory with everything below it, or one file, as pieces of a tar archive.

        Example:
            with open("home.tar", "wb") as archive:
                archive.writelines(sandbox.files.export_tar())

        Names in the archive are relative to `path`. The archive is not compressed. The content of
        a file with several names is stored once; large holes are not stored. File systems mounted
        below `path`, such as `/proc`, are left out.
        """
        return self._attachment.backend.export_tar(self._path(path))

    def import_tar(
        self, archive: bytes | BinaryIO | Iterable[bytes], path: GuestPath = "."
    ) -> None:
        """Unpack a tar archive, plain or gzip-compressed, into a directory, which is created.

        Example:
            with open("home.tar.gz", "rb") as archive:
                sandbox.files.import_tar(archive, "restored")

        Nothing is written outside `path`. Existing files are replaced. Raises `ArchiveError` if
        the archive is invalid; members that were already unpacked stay.
        """
        guest = self._path(path)
        pieces = arguments.byte_pieces("archive", archive)
        self._attachment.backend.import_tar(guest, pieces)

    def watch(
        self, path: GuestPath = ".", *, recursive: bool = True, interval_ms: float = 100
    ) -> FileWatch:
        """Watch a file, or everything below a directory, for changes from now on.

        Example:
            with sandbox.files.watch("src") as watch:
                sandbox.commands.run("touch src/new.py")
                watch.poll()  # the event that src/new.py was created

        `poll` does not wait. Iterating waits, and checks for changes every `interval_ms`.
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
