"""The implementations of the tools.

Rules: the tool's definition has validated the input; the result is plain JSON. Exceptions of the
sandbox pass through. The function of the tool `sandbox_NAME` is called NAME; those that are long
have files of their own.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from wasmsand.sdk.errors import CommandError, SandboxError
from wasmsand.tools import definitions
from wasmsand.tools.code import run_code
from wasmsand.tools.editing import replace, select_lines
from wasmsand.tools.images import IMAGE_BYTES_MAX, image_item, image_type
from wasmsand.tools.parameters import InvalidToolInput
from wasmsand.tools.process_tool import process
from wasmsand.tools.shell_tool import run_script
from wasmsand.tools.workbench import Workbench


class ProgramMissing(SandboxError):
    """The sandbox does not have the program that a tool needs."""


def run(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_run`."""
    return run_script(bench, given)


def python(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_python`."""
    try:
        return run_code(bench, given)
    except CommandError as error:
        if error.errno_name != "ENOENT":
            raise
        raise ProgramMissing(
            "python3 is not among the programs of this sandbox's image; "
            "use sandbox_run and its programs (`ls /usr/bin` lists them)"
        ) from None


def read_file(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_read_file`."""
    content = content_of(bench, given["path"])
    wants_lines = given["offset"] is not None or given["limit"] is not None
    mime = image_type(content)
    if bench.with_images and mime and not wants_lines and len(content) <= IMAGE_BYTES_MAX:
        return {"size": len(content), "image": image_item(content, mime), "truncated": False}
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        if wants_lines:
            raise InvalidToolInput(
                f"{given['path']} is not UTF-8 text, so offset and limit, which count lines, "
                "cannot be used; use sandbox_run with xxd or strings"
            ) from None
        return _binary(content, bench.output_limit)
    first = (given["offset"] or 1) - 1
    last = None if given["limit"] is None else first + given["limit"]
    wanted, total = select_lines(text, first, last)
    if first and first >= total:
        raise InvalidToolInput(f"offset is {first + 1}, but the file has only {total} lines")
    return {
        "content": wanted[: bench.output_limit],
        "encoding": "utf-8",
        "size": len(content),
        "total_lines": total,
        "truncated": len(wanted) > bench.output_limit,
    }


def write_file(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_write_file`."""
    content: str | bytes = given["content"]
    if given["encoding"] == "base64":
        try:
            content = base64.b64decode(given["content"], validate=True)
        except (binascii.Error, ValueError):
            raise InvalidToolInput("content is not valid base64, but encoding is base64") from None
    bench.sandbox.files.write(given["path"], content)
    return {"path": given["path"], "size": bench.sandbox.files.stat(given["path"]).size}


def list_files(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_list_files`."""
    entries = bench.sandbox.files.list(
        given["path"], recursive=given["recursive"], glob=given["glob"]
    )
    shown = entries[: definitions.MAX_LISTED_FILES]
    return {
        "path": given["path"],
        "entries": [
            {
                "name": entry.path if given["recursive"] else entry.name,
                "type": entry.type,
                "size": entry.size,
                "mode": f"{entry.mode:04o}",
            }
            for entry in shown
        ],
        "truncated": len(entries) > len(shown),
    }


def edit_file(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_edit_file`."""
    files, path = bench.sandbox.files, given["path"]
    changed, count = replace(
        content_of(bench, path),
        given["old_string"],
        given["new_string"],
        replace_all=given["replace_all"],
        path=path,
        most=bench.sandbox.options.fs_limit_bytes,
    )
    files.write(path, changed)
    return {"path": path, "replacements": count}


def start(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_start`."""
    return bench.background.start(given)


def install_packages(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_install_packages`."""
    new = bench.sandbox.packages.install(*given["packages"].split())
    return {"installed": [f"{package.name} {package.version}" for package in new]}


ACTIONS: Mapping[str, Callable[[Workbench, Mapping[str, Any]], dict[str, Any]]] = {
    definitions.RUN.name: run,
    definitions.PYTHON.name: python,
    definitions.READ_FILE.name: read_file,
    definitions.WRITE_FILE.name: write_file,
    definitions.LIST_FILES.name: list_files,
    definitions.EDIT_FILE.name: edit_file,
    definitions.START.name: start,
    definitions.PROCESS.name: process,
    definitions.INSTALL_PACKAGES.name: install_packages,
}


def content_of(bench: Workbench, path: str, most: int = definitions.MAX_FILE_BYTES) -> bytes:
    """The content of a file. A file that is too large, even a sparse one, is not read."""
    content = next(iter(bench.sandbox.files.read_stream(path, chunk_size=most + 1)), b"")
    if len(content) > most:
        raise InvalidToolInput(
            f"{path} has more than {most} bytes, too many for this tool; use sandbox_run with "
            "head, tail or sed"
        )
    return content


def _binary(content: bytes, output_limit: int) -> dict[str, Any]:
    # Base64 is a third longer than the bytes.
    part = content[: output_limit // 4 * 3]
    return {
        "content": base64.b64encode(part).decode("ascii"),
        "encoding": "base64",
        "size": len(content),
        "truncated": len(part) < len(content),
    }
