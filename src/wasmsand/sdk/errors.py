"""Every exception that this package raises on purpose, and the one place that makes
a public exception of a kernel error.

    SandboxError
    ├── SandboxClosedError              used after kill()
    │   ├── ForkedError                 used in a process forked from the one that made it
    │   ├── ConnectionLostError         the server of a sandbox does not answer any more
    │   └── SandboxCrashedError         .exit_status: the process of a sandbox is gone
    ├── ServerError                     .code, .status: a server refuses a request
    ├── UnsupportedError                the backend of a sandbox does not offer an operation
    ├── DiskImageError                  what was given is no disk image, or does not fit
    ├── ImageMissingError               the user space is not built or not installed
    ├── WasmDirError                    .path: a file of wasm_dir that cannot be a program
    ├── CommandError                    .errno_name: a command cannot be started or written to
    ├── InputTimeoutError               .written: a command does not read; also a TimeoutError
    └── FileError                       .errno_name, .path, .errno
        ├── NotFoundError               ENOENT
        ├── AlreadyExistsError          EEXIST
        ├── NotDirectoryError           ENOTDIR
        ├── IsDirectoryError            EISDIR
        ├── DirectoryNotEmptyError      ENOTEMPTY
        ├── PermissionDeniedError       EACCES, EPERM, EROFS
        ├── NoSpaceError                ENOSPC
        └── InvalidPathError            EINVAL, ENAMETOOLONG, ELOOP
            └── ArchiveError            what was given is no tar archive, or leads outside

A wrong argument (type, NUL byte, negative limit) is a `TypeError` or a `ValueError`,
as everywhere in Python.

Rules: a message starts with the name of the errno and says which option to change where
there is one; nobody matches message text; an error that is not listed here is a bug in
wasmsand and passes through as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wasmsand.kernel.errno import Errno, KernelError


class SandboxError(Exception):
    """Base of everything a sandbox raises."""


class _Errno:
    """A failure that has one of Linux's errors as its cause."""

    errno_name: str
    args: tuple[object, ...]

    @property
    def errno(self) -> int:
        """The number that Linux has for `errno_name`, as 2 for ENOENT. 0 if it has none."""
        return int(Errno.__members__.get(self.errno_name, 0))

    def __str__(self) -> str:
        return str(self.args[0])


class SandboxClosedError(SandboxError):
    """The sandbox was killed; create a new one."""


class ForkedError(SandboxClosedError):
    """The sandbox belongs to the process that created it, and this process was forked from
    that one. Create a new sandbox here; the one of the parent goes on there."""

    @classmethod
    def here(cls, what: str) -> ForkedError:
        """For a use of `what`, as "sandbox", in this process."""
        return cls(
            f"this {what} belongs to the process that created it, from which this one was "
            f"forked; create a new {what} here"
        )


class ConnectionLostError(SandboxClosedError):
    """The server that has the sandbox is gone or cannot be reached. One that was started again
    has lost its sandboxes; after a failure of the network the sandbox may still be there."""


class SandboxCrashedError(SandboxClosedError):
    """The process that had the sandbox (`isolation="process"`) has ended without being asked
    to: a crash, or somebody has killed it. `exit_status` is as `subprocess` has it, so minus a
    signal's number."""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message, exit_status)
        self.exit_status = exit_status

    def __str__(self) -> str:
        return str(self.args[0])


class ServerError(SandboxError):
    """A server refuses a request: no or another token, a quota, too much to do. `code` says
    which, as `"quota_exceeded"`, and `status` is that of HTTP."""

    def __init__(self, message: str, code: str, status: int) -> None:
        super().__init__(message, code, status)
        self.code = code
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


class UnsupportedError(SandboxError):
    """The sandbox does not offer this operation because of where it runs. The message says what
    to use instead."""


class DiskImageError(SandboxError):
    """What was given is not a disk image, or does not fit into the sandbox."""


class ImageMissingError(SandboxError):
    """The programs of the user space are not there: build them, or install a wheel."""


class WasmDirError(SandboxError):
    """A file of `wasm_dir` cannot be a program, or the directory cannot be read. `path` names
    the file or the directory; the message gives the reason, with all unknown imports.
    `errno_name` is `"ENOEXEC"` for a file that is not a program, else the errno of reading it."""

    def __init__(self, message: str, path: str, errno_name: str = "ENOEXEC") -> None:
        super().__init__(message, path, errno_name)
        self.path = path
        self.errno_name = errno_name

    def __str__(self) -> str:
        return str(self.args[0])


class CommandError(_Errno, SandboxError):
    """A command could not be started, or is not there to be written to. `errno_name` is the
    cause, as `"ENOEXEC"`, and `errno` its number."""

    def __init__(self, message: str, errno_name: str) -> None:
        super().__init__(message, errno_name)
        self.errno_name = errno_name


class InputTimeoutError(SandboxError, TimeoutError):
    """A command did not read its input in time. `written` is how many bytes it has taken; the
    rest may be written again."""

    def __init__(self, written: int, size: int) -> None:
        super().__init__(f"the command has taken {written} of {size} bytes of its input in time")
        self.written = written


class FileError(_Errno, SandboxError):
    """An operation on a file failed. `errno_name` is Linux's name for the cause, as
    `"ENOENT"`, and `errno` its number; `path` is the path that was given."""

    def __init__(self, message: str, errno_name: str, path: str) -> None:
        super().__init__(message, errno_name, path)
        self.errno_name = errno_name
        self.path = path


class NotFoundError(FileError):
    """There is no such file or directory."""


class AlreadyExistsError(FileError):
    """The path exists already."""


class NotDirectoryError(FileError):
    """A directory was needed and the path is something else."""


class IsDirectoryError(FileError):
    """A file was needed and the path is a directory."""


class DirectoryNotEmptyError(FileError):
    """The directory still has entries; `rm(path, recursive=True)` removes them too."""


class PermissionDeniedError(FileError):
    """The permissions of the file or of a directory above it forbid this."""


class NoSpaceError(FileError):
    """The sandbox's file system is full; the message names the option to raise."""


class InvalidPathError(FileError):
    """The path cannot be used: too long, or symbolic links that never end."""


class ArchiveError(InvalidPathError):
    """A tar archive cannot be unpacked: it is none, is cut short, contradicts itself, asks for
    too much, or a name in it leads outside."""


_FILE_ERRORS: dict[str, type[FileError]] = {
    "ENOENT": NotFoundError,
    "EEXIST": AlreadyExistsError,
    "ENOTDIR": NotDirectoryError,
    "EISDIR": IsDirectoryError,
    "ENOTEMPTY": DirectoryNotEmptyError,
    "EACCES": PermissionDeniedError,
    "EPERM": PermissionDeniedError,
    "EROFS": PermissionDeniedError,
    "ENOSPC": NoSpaceError,
    "EINVAL": InvalidPathError,
    "ENAMETOOLONG": InvalidPathError,
    "ELOOP": InvalidPathError,
}

_DESCRIPTIONS: dict[Errno, str] = {
    Errno.ENOENT: "no such file or directory",
    Errno.EEXIST: "already exists",
    Errno.ENOTDIR: "not a directory",
    Errno.EISDIR: "is a directory",
    Errno.ENOTEMPTY: "directory not empty",
    Errno.EACCES: "permission denied",
    Errno.EPERM: "operation not permitted",
    Errno.EROFS: "read-only file system",
    Errno.ENOSPC: "file system full; raise fs_limit_bytes or max_inodes",
    Errno.EINVAL: "invalid path",
    Errno.ENAMETOOLONG: "path too long",
    Errno.ELOOP: "too many symbolic links",
    Errno.EFBIG: "file too large",
    Errno.EBUSY: "in use",
    Errno.E2BIG: "command too long",
    Errno.ENOEXEC: "not a program this sandbox can run",
    Errno.ENOMEM: "out of memory; raise memory_limit_bytes",
    Errno.EAGAIN: "too many processes; raise max_processes",
    Errno.EPIPE: "nobody reads this input any more",
    Errno.ESRCH: "no such process",
}


def _message(error: KernelError, subject: str) -> str:
    """`ENOENT: no such file or directory: /x`, or what the kernel says of the cause."""
    detail = error.detail
    if error.errno is Errno.E2BIG:
        detail = f"{detail or 'command too long'}; write it with files.write and run `bash FILE`"
    if detail.startswith("/"):
        subject = detail
    elif subject in detail and subject != detail:
        return f"{error.errno.name}: {detail}"
    elif detail and subject != detail:
        return f"{error.errno.name}: {detail} ({subject})"
    description = _DESCRIPTIONS.get(error.errno, "failed")
    return f"{error.errno.name}: {description}: {subject}"


def file_error(message: str, errno_name: str, path: str) -> FileError:
    """The exception for an errno about `path`; `message` starts with the errno's name."""
    return _FILE_ERRORS.get(errno_name, FileError)(message, errno_name, path)


def no_space(path: str, limit: int) -> FileError:
    """What does not fit a sandbox's file system."""
    message = f"ENOSPC: file system full ({limit} bytes); raise fs_limit_bytes ({path})"
    return file_error(message, "ENOSPC", path)


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Make public exceptions of what the kernel raises about `path`."""
    try:
        yield
    except KernelError as error:
        raise file_error(_message(error, path), error.errno.name, path) from None


def command_error(error: KernelError, program: str) -> CommandError:
    """The public exception for what the kernel raises when `program` is started or used."""
    return CommandError(_message(error, program), error.errno.name)


@contextmanager
def command_errors(program: str) -> Iterator[None]:
    """Make public exceptions of what the kernel raises about `program`."""
    try:
        yield
    except KernelError as error:
        raise command_error(error, program) from None
