"""Error responses as exceptions, for the client's end of the pipe.

Rules: an error response becomes the exception that a sandbox in this process would raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wasmsand.rpc.protocol import INVALID_PARAMS, RpcError
from wasmsand.sdk.errors import (
    ArchiveError,
    CommandError,
    ImageMissingError,
    SandboxClosedError,
    SandboxError,
    WasmDirError,
    file_error,
    package_error,
    port_error,
    state_error,
)


@contextmanager
def failures() -> Iterator[None]:
    """Turn an error response into the exception that a sandbox in this process would raise."""
    try:
        yield
    except RpcError as error:
        raise _exception(error) from None


def _exception(error: RpcError) -> Exception:
    data = error.data or {}
    errno_name, path = str(data.get("errno", "EIO")), str(data.get("path", ""))
    match data.get("kind"):
        case "file":
            return file_error(error.message, errno_name, path)
        case "archive":
            return ArchiveError(error.message, errno_name, path)
        case "port":
            port = data.get("port")
            return port_error(error.message, errno_name, port if isinstance(port, int) else 0)
        case "command":
            return CommandError(error.message, errno_name)
        case "wasm_dir":
            return WasmDirError(error.message.removeprefix(f"{errno_name}: "), path, errno_name)
        case "image":
            return ImageMissingError(error.message.removeprefix(f"{errno_name}: "))
        case "package":
            message = error.message.removeprefix(f"{errno_name}: ")
            return package_error(str(data.get("code")), message, str(data.get("package", "")))
        case "state":
            message = error.message.removeprefix(f"{errno_name}: ")
            return state_error(str(data.get("code")), message)
        case "closed":
            return SandboxClosedError(error.message)
    if error.code == INVALID_PARAMS:
        return ValueError(error.message.removeprefix("Invalid params: "))
    return SandboxError(f"error in the process of the sandbox: {error.message}")
