"""Files of a sandbox as MCP resources: `sandbox:///home/user/notes.txt`.

Rules: a URI consists of the scheme and an absolute path in the sandbox, percent-encoded. Lists and
contents are bounded; the error for a file that is too large says how to read it in parts.
"""

from __future__ import annotations

import base64
import mimetypes
import posixpath
from urllib.parse import quote, unquote_to_bytes, urlsplit

from mcp.types import BlobResourceContents, Resource, ResourceTemplate, TextResourceContents

from wasmsand.sdk.options import HOME
from wasmsand.sdk.sandbox import Sandbox

SCHEME = "sandbox"
MAX_LISTED = 1_000
MAX_BYTES = 16 * 1024 * 1024

TEMPLATE = ResourceTemplate(
    name="file",
    title="A file of the sandbox",
    uri_template=f"{SCHEME}:///{{+path}}",
    description="Any file of the sandbox; path is its absolute path without the first slash.",
)


class BadResource(ValueError):
    """An invalid URI, or one of a file that cannot be read as a resource."""


def listed(sandbox: Sandbox) -> list[Resource]:
    """The files below the home directory, without hidden ones, sorted by depth and path."""
    paths = [
        (posixpath.relpath(entry.path, HOME), entry)
        for entry in sandbox.files.list(HOME, recursive=True)
        if entry.type == "file"
    ]
    shown = [(path, entry) for path, entry in paths if not f"/{path}".count("/.")]
    shown.sort(key=lambda pair: (pair[0].count("/"), pair[0]))
    return [
        Resource(
            uri=uri_of(entry.path),
            name=path.encode("utf-8", "replace").decode("utf-8"),
            mime_type=mimetypes.guess_type(path)[0],
            size=entry.size,
        )
        for path, entry in shown[:MAX_LISTED]
    ]


def read(sandbox: Sandbox, uri: str) -> TextResourceContents | BlobResourceContents:
    """The file that `uri` names. Raises `BadResource` or `FileError`."""
    path = path_of(uri)
    size = sandbox.files.stat(path).size
    if size > MAX_BYTES:
        raise BadResource(
            f"{path} has {size} bytes, and a resource may have {MAX_BYTES}; read parts of it "
            "with sandbox_read_file or sandbox_run"
        )
    # Limit the read too: the file may have grown.
    content = next(iter(sandbox.files.read_stream(path, chunk_size=MAX_BYTES)), b"")
    mime_type = mimetypes.guess_type(path)[0]
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return BlobResourceContents(
            uri=uri,
            mime_type=mime_type or "application/octet-stream",
            blob=base64.b64encode(content).decode("ascii"),
        )
    return TextResourceContents(uri=uri, mime_type=mime_type or "text/plain", text=text)


def uri_of(path: str) -> str:
    """The URI of an absolute path."""
    return f"{SCHEME}://{quote(path.encode('utf-8', 'surrogateescape'))}"


def path_of(uri: str) -> str:
    """The absolute path that `uri` names."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise BadResource(f"not a URI: {uri:.200}: {error}") from None
    if parts.scheme != SCHEME or parts.netloc or not parts.path.startswith("/"):
        raise BadResource(f"a resource is {SCHEME}:///absolute/path, not {uri:.200}")
    if parts.query or parts.fragment:
        raise BadResource(f"write ? and # in a path as %3F and %23: {uri:.200}")
    return unquote_to_bytes(parts.path).decode("utf-8", "surrogateescape")
