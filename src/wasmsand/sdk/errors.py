"""Every exception that this package raises on purpose, and the one place that turns a kernel error
into a public exception.

    SandboxError
    ├── SandboxClosedError              used after kill()
    │   ├── ForkedError                 used in a child process after fork
    │   ├── ConnectionLostError         the server of the sandbox does not answer
    │   └── SandboxCrashedError         .exit_status: the process of the sandbox has ended
    ├── ServerError                     .code, .status: a server refused a request
    ├── UnsupportedError                the backend of a sandbox does not offer an operation
    ├── StateError                      a sandbox cannot be copied, saved or loaded
    │   ├── StateFileError              not a saved sandbox, or damaged
    │   │   └── StateVersionError       saved by a newer version
    │   ├── StateImageError             it needs another image
    │   ├── StateLimitError             it does not fit into the limits
    │   ├── StateLostError              a command or session was not part of a stored state
    │   └── StoreError                  a store of sandboxes cannot be read or written
    │       └── StoreBusyError          somebody else has opened the sandbox
    ├── DiskImageError                  not a valid disk image, or it does not fit
    ├── ImageMissingError               the user space is not built or not installed
    ├── WasmDirError                    .path: a file in wasm_dir is not a valid program
    ├── MountError                      .path: a directory cannot be mounted
    │   └── MountConflictError          .conflicts: the host has changed the same files
    ├── PackageError                    .package, .code: a Python package cannot be installed
    │   ├── PackageNotFoundError        there is no such package, or it is not installed
    │   ├── PackageVersionError         the image has another version of it
    │   ├── PackageNotBuiltError        it is native, and not installed on this host
    │   ├── NativePackageError          it is native, and the sandbox cannot have it
    │   ├── PackageConflictError        files of the sandbox are in the way
    │   ├── IndexNotAllowedError        installs from the package index are not allowed
    │   └── PackageIndexError           the package index or pip failed
    ├── PortError                       .errno_name, .port: a server in the sandbox is not reached
    │   └── PortTimeoutError            nothing listens on the port in time
    ├── CommandError                    .errno_name: a command cannot be started or written to
    ├── InputTimeoutError               .written: a command does not read its input
    └── FileError                       .errno_name, .path, .errno
        ├── NotFoundError               ENOENT
        ├── AlreadyExistsError          EEXIST
        ├── NotDirectoryError           ENOTDIR
        ├── IsDirectoryError            EISDIR
        ├── DirectoryNotEmptyError      ENOTEMPTY
        ├── PermissionDeniedError       EACCES, EPERM, EROFS
        ├── NoSpaceError                ENOSPC
        └── InvalidPathError            EINVAL, ENAMETOOLONG, ELOOP
            └── ArchiveError            not a valid tar archive, or it leads outside

A wrong argument (type, NUL byte, negative limit) is a `TypeError` or a `ValueError`,
as everywhere in Python.

Rules: a message starts with the name of the errno and says which option to change where
there is one; no code matches message text; an error that is not listed here is a bug in wasmsand
and passes through unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Final

from wasmsand.kernel.errno import Errno, KernelError


class SandboxError(Exception):
    """The base class of all exceptions of a sandbox."""


class _Errno:
    """A failure with a Linux errno as its cause."""

    errno_name: str
    args: tuple[object, ...]

    @property
    def errno(self) -> int:
        """The Linux number of `errno_name`, for example 2 for ENOENT; 0 if there is none."""
        return int(Errno.__members__.get(self.errno_name, 0))

    def __str__(self) -> str:
        return str(self.args[0])


class SandboxClosedError(SandboxError):
    """The sandbox was killed; create a new one."""


class ForkedError(SandboxClosedError):
    """The sandbox belongs to the process that created it, and this process was forked from that
    one. Create a new sandbox here; the parent's sandbox keeps running there."""

    @classmethod
    def here(cls, what: str) -> ForkedError:
        """The exception for the use of `what`, for example "sandbox", in this process."""
        return cls(
            f"this {what} belongs to the process that created it, from which this one was "
            f"forked; create a new {what} here"
        )


class ConnectionLostError(SandboxClosedError):
    """The server of the sandbox has ended or cannot be reached. A restarted server has lost its
    sandboxes; after a network failure the sandbox may still exist."""


class SandboxCrashedError(SandboxClosedError):
    """The process of the sandbox (`isolation="process"`, or a worker of a server) has ended
    unexpectedly: it crashed or was killed. `exit_status` has the form of `subprocess`: negative if
    a signal ended the process."""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message, exit_status)
        self.exit_status = exit_status

    def __str__(self) -> str:
        return str(self.args[0])


class ServerError(SandboxError):
    """A server refused a request: a missing or wrong token, a quota, too much load. `code` names
    the reason, for example `"quota_exceeded"`, and `status` is the HTTP status."""

    def __init__(self, message: str, code: str, status: int) -> None:
        super().__init__(message, code, status)
        self.code = code
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


class UnsupportedError(SandboxError):
    """The sandbox does not offer this operation because of where it runs. The message says what
    to use instead."""


class StateError(SandboxError):
    """A sandbox cannot be copied, restored, saved or loaded; the message names what is in the
    way."""

    code: ClassVar[str] = "cannot_copy"
    """The kind of error in protocols."""


class StateFileError(StateError):
    """The data is not a saved sandbox, or it is damaged."""

    code = "state_file"


class StateVersionError(StateFileError):
    """A newer version of wasmsand has saved the sandbox."""

    code = "state_version"


class StateImageError(StateError):
    """The saved sandbox needs another image, or other programs, than this host has."""

    code = "state_image"


class StateLimitError(StateError):
    """The saved sandbox does not fit into the limits with which it is loaded."""

    code = "state_limit"


class StoreError(StateError):
    """A store of named sandboxes cannot be read or written. What it had before is unchanged."""

    code = "store_failed"


class StoreBusyError(StoreError):
    """Somebody else has opened the sandbox with this name."""

    code = "store_busy"


class StateLostError(StateError):
    """A command or session was not part of the sandbox's stored state, with which the sandbox went
    on after a pause or a restart of its server."""

    code = "state_lost"


STATE_ERRORS: Final[Mapping[str, type[StateError]]] = {
    kind.code: kind
    for kind in (
        StateFileError,
        StateVersionError,
        StateImageError,
        StateLimitError,
        StoreError,
        StoreBusyError,
        StateLostError,
    )
}


def state_error(code: str, message: str) -> StateError:
    """The exception for a code."""
    return STATE_ERRORS.get(code, StateError)(message)


class DiskImageError(SandboxError):
    """The data is not a valid disk image, or does not fit into the sandbox."""


class ImageMissingError(SandboxError):
    """The programs of the user space are missing: build them, or install a wheel."""


class WasmDirError(SandboxError):
    """A file in `wasm_dir` is not a valid program, or the directory cannot be read. `path` names
    the file or the directory; the message gives the reason, with all unknown imports.
    `errno_name` is `"ENOEXEC"` for a file that is not a program, else the errno of reading it."""

    def __init__(self, message: str, path: str, errno_name: str = "ENOEXEC") -> None:
        super().__init__(message, path, errno_name)
        self.path = path
        self.errno_name = errno_name

    def __str__(self) -> str:
        return str(self.args[0])


class MountError(SandboxError):
    """A directory of this machine cannot be mounted, or an overlay cannot be applied to it."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message, path)
        self.path = path
        """The path in the sandbox."""

    def __str__(self) -> str:
        return str(self.args[0])


class MountConflictError(MountError):
    """Files that the sandbox has changed in an overlay were changed on this machine too. Nothing
    was written. `apply(force=True)` replaces them."""

    def __init__(self, message: str, path: str, conflicts: tuple[str, ...]) -> None:
        super().__init__(message, path)
        self.args = (message, path, conflicts)
        self.conflicts = conflicts
        """The files, relative to `path`."""


class PackageError(SandboxError):
    """A Python package cannot be installed or uninstalled. `package` is its normalised name, and
    `code` names the reason, for example `"package_not_found"`."""

    code = "package_error"

    def __init__(self, message: str, package: str = "") -> None:
        super().__init__(message, package)
        self.package = package

    def __str__(self) -> str:
        return str(self.args[0])


class PackageNotFoundError(PackageError):
    """There is no such package, or it is not installed. The message names similar ones, and what
    there is."""

    code = "package_not_found"


class PackageVersionError(PackageError):
    """The image has another version of the package than the one that is wanted."""

    code = "package_version"


class PackageNotBuiltError(PackageError):
    """The package has native code, and is not installed on this host. The message says how to
    install it."""

    code = "package_not_built"


class NativePackageError(PackageError):
    """The package has native code, and is not one of those that the image has. Only wheels without
    native code can be installed."""

    code = "native_package"


class PackageConflictError(PackageError):
    """Files of the sandbox are in the way of the package."""

    code = "package_conflict"


class IndexNotAllowedError(PackageError):
    """The package is not in the image, and this server does not allow installs from the package
    index."""

    code = "index_not_allowed"


class PackageIndexError(PackageError):
    """pip on this host failed, or what it downloaded is invalid. The message is that of pip."""

    code = "package_index_failed"


PACKAGE_ERRORS: dict[str, type[PackageError]] = {
    error.code: error
    for error in (
        PackageNotFoundError,
        PackageVersionError,
        PackageNotBuiltError,
        NativePackageError,
        PackageConflictError,
        IndexNotAllowedError,
        PackageIndexError,
    )
}
"""The exceptions about packages, by their code."""


def package_error(code: str, message: str, package: str) -> PackageError:
    """The exception for a code."""
    return PACKAGE_ERRORS.get(code, PackageError)(message, package)


class CommandError(_Errno, SandboxError):
    """A command could not be started, or its input could not be written. `errno_name` is the cause,
    for example `"ENOEXEC"`, and `errno` its number."""

    def __init__(self, message: str, errno_name: str) -> None:
        super().__init__(message, errno_name)
        self.errno_name = errno_name


class PortError(_Errno, SandboxError):
    """A server in the sandbox cannot be reached, or a port of this machine cannot be opened for it.
    `port` is the port of the sandbox; `errno_name` is the cause, for example `"ECONNREFUSED"` if
    no program listens on the port, and `errno` its number."""

    def __init__(self, message: str, errno_name: str, port: int) -> None:
        super().__init__(message, errno_name, port)
        self.errno_name = errno_name
        self.port = port


class PortTimeoutError(PortError, TimeoutError):  # type: ignore[misc] # both have `errno`: ours
    """No program listens on the port in time, or its server does not react."""

    def __init__(self, message: str, errno_name: str, port: int) -> None:
        TimeoutError.__init__(self, message)  # three arguments would have another meaning there
        self.args = (message, errno_name, port)
        self.errno_name = errno_name
        self.port = port


def port_error(message: str, errno_name: str, port: int) -> PortError:
    """The exception for an errno about a port of the sandbox."""
    kind = PortTimeoutError if errno_name == "ETIMEDOUT" else PortError
    return kind(message, errno_name, port)


@contextmanager
def port_errors(port: int) -> Iterator[None]:
    """Turn the kernel's errors about `port` into public exceptions."""
    try:
        yield
    except KernelError as error:
        message = f"{error.errno.name}: {error.detail}"
        raise port_error(message, error.errno.name, port) from None


class InputTimeoutError(SandboxError, TimeoutError):
    """A command did not read its input in time. `written` is the number of bytes written; the rest
    may be written again."""

    def __init__(self, written: int, size: int) -> None:
        super().__init__(f"the command read only {written} of {size} bytes of its input in time")
        self.written = written


class FileError(_Errno, SandboxError):
    """An operation on a file failed. `errno_name` is the Linux name of the cause, for example
    `"ENOENT"`, and `errno` its number; `path` is the path that was given."""

    def __init__(self, message: str, errno_name: str, path: str) -> None:
        super().__init__(message, errno_name, path)
        self.errno_name = errno_name
        self.path = path


class NotFoundError(FileError):
    """The file or directory does not exist."""


class AlreadyExistsError(FileError):
    """The path exists already."""


class NotDirectoryError(FileError):
    """The path is not a directory."""


class IsDirectoryError(FileError):
    """The path is a directory, but a file is needed."""


class DirectoryNotEmptyError(FileError):
    """The directory still has entries; `rm(path, recursive=True)` removes them too."""


class PermissionDeniedError(FileError):
    """The permissions of the file, or of a directory above it, do not allow the operation."""


class NoSpaceError(FileError):
    """The sandbox's file system is full; the message names the option to raise."""


class InvalidPathError(FileError):
    """The path is invalid: it is too long, or has too many symbolic links."""


class ArchiveError(InvalidPathError):
    """A tar archive cannot be unpacked: it is invalid, truncated, contradictory or too large, or a
    name in it leads outside."""


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
    Errno.EPIPE: "the command has ended or closed this input",
    Errno.ESRCH: "no such process",
}


def _message(error: KernelError, subject: str) -> str:
    """`ENOENT: no such file or directory: /x`, or the kernel's own description of the cause."""
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
    """The exception for data that does not fit into a sandbox's file system."""
    message = f"ENOSPC: file system full ({limit} bytes); raise fs_limit_bytes ({path})"
    return file_error(message, "ENOSPC", path)


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn the kernel's errors about `path` into public exceptions."""
    try:
        yield
    except KernelError as error:
        raise file_error(_message(error, path), error.errno.name, path) from None


def command_error(error: KernelError, program: str) -> CommandError:
    """The public exception for a kernel error when `program` is started or used."""
    return CommandError(_message(error, program), error.errno.name)


@contextmanager
def command_errors(program: str) -> Iterator[None]:
    """Turn the kernel's errors about `program` into public exceptions."""
    try:
        yield
    except KernelError as error:
        raise command_error(error, program) from None
