"""The JSON form of errors, and the mapping between exceptions and status and code.

    {"error": {"code": "not_found", "errno": "ENOENT", "message": "...", "path": "/x"}}

Owns the table of codes: the server turns an exception into a body with it, and the client
(`answers`) turns the body into the same exception. Rules: imports only the standard library and
the SDK's exceptions, because the client uses it; `errno` and `path` are null where they do not
apply; an exception that is not in the table is a bug in the server, and its text is not sent.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from wasmsand.sdk import errors as sdk


@dataclass(eq=False)
class ApiFailure(Exception):
    """An error response."""

    status: int
    code: str
    message: str
    _: KW_ONLY
    errno: str | None = None
    path: str | None = None
    package: str | None = None
    """For an error about a Python package: its name."""
    exit_status: int | None = None
    """For a sandbox whose process has ended: how."""
    retry_after: float | None = None
    """Seconds after which a retry may succeed."""

    def __str__(self) -> str:
        return self.message

    def body(self) -> dict[str, dict[str, str | int | None]]:
        """The JSON body."""
        error: dict[str, str | int | None] = {
            "code": self.code,
            "errno": self.errno,
            "message": self.message,
            "path": self.path,
        }
        if self.package is not None:
            error["package"] = self.package
        if self.exit_status is not None:
            error["exit_status"] = self.exit_status
        return {"error": error}


EXCEPTIONS: tuple[tuple[type[Exception], int, str], ...] = (
    (sdk.NotFoundError, 404, "not_found"),
    (sdk.AlreadyExistsError, 409, "already_exists"),
    (sdk.NotDirectoryError, 409, "not_directory"),
    (sdk.IsDirectoryError, 409, "is_directory"),
    (sdk.DirectoryNotEmptyError, 409, "directory_not_empty"),
    (sdk.PermissionDeniedError, 403, "permission_denied"),
    (sdk.NoSpaceError, 507, "no_space"),
    (sdk.ArchiveError, 400, "bad_archive"),
    (sdk.InvalidPathError, 400, "invalid_path"),
    (sdk.FileError, 409, "file_error"),
    (sdk.CommandError, 422, "command_error"),
    (sdk.PortTimeoutError, 504, "port_timeout"),
    (sdk.PortError, 502, "port_error"),
    (sdk.UnsupportedError, 501, "unsupported"),
    (sdk.PackageNotFoundError, 404, sdk.PackageNotFoundError.code),
    (sdk.PackageVersionError, 409, sdk.PackageVersionError.code),
    (sdk.PackageNotBuiltError, 501, sdk.PackageNotBuiltError.code),
    (sdk.NativePackageError, 422, sdk.NativePackageError.code),
    (sdk.PackageConflictError, 409, sdk.PackageConflictError.code),
    (sdk.IndexNotAllowedError, 403, sdk.IndexNotAllowedError.code),
    (sdk.PackageIndexError, 502, sdk.PackageIndexError.code),
    (sdk.StateLostError, 410, sdk.StateLostError.code),
    (sdk.StateVersionError, 409, sdk.StateVersionError.code),
    (sdk.StateFileError, 422, sdk.StateFileError.code),
    (sdk.StateImageError, 409, sdk.StateImageError.code),
    (sdk.StateLimitError, 413, sdk.StateLimitError.code),
    (sdk.StoreError, 507, sdk.StoreError.code),
    (sdk.StateError, 409, sdk.StateError.code),
    (sdk.SandboxCrashedError, 410, "sandbox_crashed"),
    (sdk.SandboxClosedError, 410, "sandbox_closed"),
    (sdk.ImageMissingError, 500, "image_missing"),
    (ValueError, 400, "invalid_value"),
)
"""The first match counts, so a class stands before its base classes."""

NO_SNAPSHOT = "snapshot_not_found"
BATCH_GONE = "batch_gone"
GONE = frozenset({"sandbox_closed", "sandbox_not_found"})
"""Codes that mean that a sandbox no longer exists."""


def lost(what: str) -> ApiFailure:
    """The failure for a command or session that a stored sandbox does not contain."""
    return ApiFailure(
        410,
        sdk.StateLostError.code,
        f"{what} ended when the sandbox was stored: it could not be part of the stored state, or "
        "the server ended before it was stored",
    )


def failure_of(error: Exception) -> ApiFailure | None:
    """The response for `error`; None if it is a bug."""
    if isinstance(error, ApiFailure):
        return error
    for kind, status, code in EXCEPTIONS:
        if isinstance(error, kind):
            return ApiFailure(
                status,
                code,
                str(error),
                errno=getattr(error, "errno_name", None),
                path=getattr(error, "path", None),
                package=getattr(error, "package", None),
                exit_status=getattr(error, "exit_status", None),
            )
    return None
