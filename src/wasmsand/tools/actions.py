"""The implementations of the tools.

Rules: the tool's definition has validated the input; the result is plain JSON. Exceptions of the
sandbox pass through. The function of the tool `sandbox_NAME` is called NAME.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wasmsand.sdk.errors import CommandError, SandboxError
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.tools import definitions
from wasmsand.tools.code import run_code
from wasmsand.tools.editing import replace, select_lines
from wasmsand.tools.parameters import InvalidToolInput
from wasmsand.tools.workbench import Workbench, note_of, shortened


class ProgramMissing(SandboxError):
    """The sandbox does not have the program that a tool needs."""


def run(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """`sandbox_run`."""
    return _command(bench, given["command"], given)


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
    content = _content(bench, given["path"])
    wants_lines = given["offset"] is not None or given["limit"] is not None
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
        _content(bench, path),
        given["old_string"],
        given["new_string"],
        replace_all=given["replace_all"],
        path=path,
        most=bench.sandbox.options.fs_limit_bytes,
    )
    files.write(path, changed)
    return {"path": path, "replacements": count}


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
    definitions.INSTALL_PACKAGES.name: install_packages,
}


def _command(
    bench: Workbench, command: str | Sequence[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    commands, observer = bench.sandbox.commands, bench.observer
    stdin, cwd, env, timeout_ms = (given[name] for name in ("stdin", "cwd", "env", "timeout_ms"))
    limit = timeout_ms or bench.sandbox.options.timeout_ms
    if observer is None:
        result = commands.run(command, stdin=stdin, cwd=cwd, env=env, timeout_ms=limit)
    else:
        handle = commands.start(
            command,
            stdin=stdin or "",
            cwd=cwd,
            env=env,
            timeout_ms=limit,
        )
        observer.started(handle)
        result = handle.wait(on_stdout=observer.printed, on_stderr=observer.printed)
    described: dict[str, Any] = {
        "exit_code": result.exit_code,
        "stdout": shortened(bench, result.stdout, result.stdout_bytes, "stdout"),
        "stderr": shortened(bench, result.stderr, result.stderr_bytes, "stderr"),
        "execution_time_ms": round(result.execution_time_ms),
    }
    if note := note_of(result):
        described["note"] = note
    return described


def _content(bench: Workbench, path: str) -> bytes:
    """The content of a file. A file that is too large, even a sparse one, is not read."""
    most = definitions.MAX_FILE_BYTES
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


def has_program(sandbox: Sandbox, name: str) -> bool:
    """Whether the usual directories for programs contain `name`."""
    return any(
        sandbox.files.exists(posixpath.join(directory, name))
        for directory in ("/usr/local/bin", "/usr/bin", "/bin")
    )
