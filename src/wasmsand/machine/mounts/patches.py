"""The differences of an overlay as a patch.

Owns `patch_of`, which writes the format of `git diff`: `git apply` and `patch -p1` read it. Rules:
a file that is not UTF-8 text, or is larger than PATCH_FILE_MAX, is named but its content is left
out. The work per file is bounded: if a file has too many lines to compare, all are replaced.
"""

from __future__ import annotations

import difflib
import stat as modes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from wasmsand.machine.host_access import HostAccess
from wasmsand.machine.mounts.differences import Difference, content_of

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine
    from wasmsand.machine.mounts.host_directory import HostDirectory

PATCH_FILE_MAX: Final = 1 << 20
_LINES_MAX: Final = 20_000
_NO_NEWLINE: Final = "\n\\ No newline at end of file\n"


def patch_of(machine: Machine, path: str, found: list[Difference]) -> str:
    """A patch that makes the host's directory what the overlay on `path` is, given their
    differences."""
    mounted, _ = machine.mounts.overlay(path)
    assert mounted.directory is not None
    access = HostAccess(machine)
    return "".join(
        line
        for difference in found
        if not difference.is_directory
        for line in _file_patch(difference, access, mounted.directory)
    )


def _file_patch(
    difference: Difference, access: HostAccess, directory: HostDirectory
) -> Iterator[str]:
    old_mode = None if difference.old is None else _git_mode(difference.old.mode)
    new_mode = None if difference.new is None else _git_mode(difference.new.mode)
    old, new = _quoted(b"a/" + difference.path), _quoted(b"b/" + difference.path)
    before = _old_content(difference, directory)
    after = _new_content(difference, access)
    if old_mode == new_mode and before == after:
        return  # only permissions differ that git does not know
    yield f"diff --git {old} {new}\n"
    if old_mode is None:
        yield f"new file mode {new_mode}\n"
        old = "/dev/null"
    elif new_mode is None:
        yield f"deleted file mode {old_mode}\n"
        new = "/dev/null"
    elif old_mode != new_mode:
        yield f"old mode {old_mode}\nnew mode {new_mode}\n"
    if before == after:
        return
    lines = _lines(before), _lines(after)
    if lines[0] is None or lines[1] is None:
        yield f"Binary files {old} and {new} differ\n"
        return
    yield f"--- {old}\n+++ {new}\n"
    yield from _hunks(lines[0], lines[1])


def _hunks(before: list[str], after: list[str]) -> Iterator[str]:
    if max(len(before), len(after)) > _LINES_MAX:
        yield f"@@ -{_range(len(before))} +{_range(len(after))} @@\n"
        yield from (_line("-" + line) for line in before)
        yield from (_line("+" + line) for line in after)
        return
    found = difflib.unified_diff(before, after)
    for number, line in enumerate(found):
        if number >= 2:  # after the two lines with file names
            yield _line(line)


def _range(count: int) -> str:
    return f"1,{count}" if count else "0,0"


def _line(line: str) -> str:
    return line if line.endswith("\n") else line + _NO_NEWLINE


def _git_mode(mode: int) -> str:
    if modes.S_ISLNK(mode):
        return "120000"
    return "100755" if mode & 0o100 else "100644"


def _old_content(difference: Difference, directory: HostDirectory) -> bytes | None:
    old = difference.old
    if old is None:
        return b""
    if modes.S_ISLNK(old.mode):
        return old.target
    if old.size > PATCH_FILE_MAX or not modes.S_ISREG(old.mode):
        return None
    return directory.content_at(difference.names, PATCH_FILE_MAX)


def _new_content(difference: Difference, access: HostAccess) -> bytes | None:
    if difference.new is None or difference.node is None:
        return b""
    if modes.S_ISLNK(difference.new.mode):
        with access as namespace:
            return namespace.readlink(difference.node)
    if difference.new.size > PATCH_FILE_MAX:
        return None
    return content_of(access, difference.node)


def _lines(content: bytes | None) -> list[str] | None:
    """The lines of a text; None if it is not one."""
    if content is None or b"\0" in content:
        return None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _quoted(path: bytes) -> str:
    """A path as git writes it: in quotes if it has special bytes."""
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in path):
        return path.decode()
    parts = []
    for byte in path:
        if byte in b'"\\':
            parts.append("\\" + chr(byte))
        elif 0x20 <= byte < 0x7F:
            parts.append(chr(byte))
        else:
            parts.append(f"\\{byte:03o}")
    return '"' + "".join(parts) + '"'
