"""Validates arguments of the API.

Rules: a wrong type raises `TypeError`, a wrong value `ValueError`, and the message starts with the
argument's name. Nothing here depends on the machine.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence

from wasmsand.machine.command import DEFAULT_USER, ROOT_USER

_LAST_SIGNAL = 64
_READ_STEP = 1024 * 1024
_PACKAGES_MAX = 1000
_REQUIREMENT_LENGTH_MAX = 500
_METADATA_MAX = 32
_METADATA_NAME_MAX = 64
_METADATA_VALUE_MAX = 1024
LONGEST_TIMEOUT_MS = 10**12
"""Thirty years; a longer timeout would overflow the host's timers."""


def positive_integer(name: str, value: object) -> int:
    """`value` as an int of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {_kind(value)}")
    if value <= 0:
        raise ValueError(f"{name} must be positive, not {value}")
    return value


def port(name: str, value: object) -> int:
    """`value` as the number of a TCP port."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {_kind(value)}")
    if not 1 <= value <= 65_535:
        raise ValueError(f"{name} must be from 1 to 65535, not {value}")
    return value


def window_size(name: str, value: object) -> int:
    """`value` as a number of columns or rows of a terminal."""
    size = positive_integer(name, value)
    if size > 65535:
        raise ValueError(f"{name} must be at most 65535, not {size}")
    return size


def host_port(name: str, value: object) -> int:
    """`value` as the number of a TCP port of this machine; 0 means a free one."""
    return 0 if value == 0 and type(value) is int else port(name, value)


def timeout_seconds(name: str, value: object) -> float | None:
    """`value`, in milliseconds, converted to seconds; None means no timeout."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of milliseconds or None, not {_kind(value)}")
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a positive number of milliseconds, not {value}")
    return min(value, LONGEST_TIMEOUT_MS) / 1000


def text(name: str, value: object) -> str:
    """`value` as text for a guest: a str without NUL characters."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {_kind(value)}")
    if "\0" in value:
        raise ValueError(f"{name} must not contain a NUL character")
    try:
        _encoded(value)
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be encodable as UTF-8") from None
    return value


def non_empty_text(name: str, value: object) -> str:
    """`value` as text that is not empty."""
    if not text(name, value):
        raise ValueError(f"{name} must not be empty")
    return str(value)


def guest_path(name: str, value: object, cwd: str) -> str:
    """`value` as an absolute path in the sandbox; a relative one starts at `cwd`.

    `..` stays in the path: the kernel resolves it, because symbolic links matter.
    """
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a str or a path, not {_kind(value)}")
    path = text(name, os.fspath(value))
    if not path:
        raise ValueError(f"{name} must not be empty")
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return cwd if path in ("", ".") else posixpath.join(cwd, path)


def host_path(name: str, value: object) -> str:
    """`value` as an absolute path of this machine."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a str or a path, not {_kind(value)}")
    path = os.fspath(value)
    if not isinstance(path, str):
        raise TypeError(f"{name} must be a path of str, not {_kind(path)}")
    if not path or "\0" in path:
        raise ValueError(f"{name} must be a non-empty path without NUL characters")
    return os.path.abspath(path)


def absolute_path(name: str, value: object) -> str:
    """`value` as an absolute path in the sandbox."""
    path = guest_path(name, value, "")
    if not path.startswith("/"):
        raise ValueError(f"{name} must be an absolute path, not {str(value)!r}")
    return path


def content(name: str, value: object) -> bytes:
    """`value` as bytes; text is encoded as UTF-8."""
    if isinstance(value, str):
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(f"{name} must be encodable as UTF-8; pass bytes instead") from None
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"{name} must be bytes or str, not {_kind(value)}")


def content_or_file(name: str, value: object, limit: int) -> bytes:
    """`value` as bytes; a binary file is read to its end, or until it exceeds `limit` bytes, so
    that writing it will fail."""
    read = getattr(value, "read", None)
    if read is None:
        if not isinstance(value, str | bytes | bytearray | memoryview):
            raise TypeError(f"{name} must be bytes, str or a binary file, not {_kind(value)}")
        return content(name, value)
    pieces, room = [], limit + 1
    while room > 0 and (piece := read(min(room, _READ_STEP))):
        if not isinstance(piece, bytes | bytearray | memoryview):
            raise TypeError(f"{name} must be a file opened in binary mode ('rb')")
        pieces.append(bytes(piece))
        room -= len(piece)
    return b"".join(pieces)


def byte_pieces(name: str, value: object) -> Iterator[bytes]:
    """The pieces of `value`: bytes, a binary file or an iterable of bytes."""
    if isinstance(value, bytes | bytearray | memoryview):
        return iter((bytes(value),))
    read = getattr(value, "read", None)
    if read is not None:
        return _checked_pieces(name, iter(lambda: read(_READ_STEP), b""))
    if isinstance(value, Iterable) and not isinstance(value, str):
        return _checked_pieces(name, value)
    raise TypeError(f"{name} must be bytes, a binary file or pieces of bytes, not {_kind(value)}")


def _checked_pieces(name: str, pieces: Iterable[object]) -> Iterator[bytes]:
    for piece in pieces:
        if not isinstance(piece, bytes | bytearray | memoryview):
            raise TypeError(f"{name} must be made of bytes, not {_kind(piece)}")
        yield bytes(piece)


def patterns(name: str, value: object) -> list[str]:
    """`value` as patterns of file names."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f'{name} must be patterns such as ["*.pyc"], not {_kind(value)}')
    return [text(f"{name}[{index}]", item) for index, item in enumerate(value)]


def mapping(name: str, value: object) -> Mapping[object, object]:
    """`value` as a mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, not {_kind(value)}")
    return value


def command_line(command: object, shell: tuple[str, ...]) -> tuple[str, ...]:
    """The argument vector of `command`: a str is passed to `shell`, a sequence is run
    unchanged."""
    if isinstance(command, str):
        return (*shell, text("command", command))
    if isinstance(command, bytes | bytearray) or not isinstance(command, Sequence):
        raise TypeError(f"command must be a str or a sequence of str, not {_kind(command)}")
    if not command:
        raise ValueError("command must name a program, but is an empty sequence")
    words = tuple(text(f"command[{index}]", word) for index, word in enumerate(command))
    if not words[0]:
        raise ValueError("command[0] must name a program, but is empty")
    return words


def user_name(name: str, value: object) -> str:
    """`value` as the name of a user; None is the usual one."""
    if value is None:
        return DEFAULT_USER
    if value not in (DEFAULT_USER, ROOT_USER):
        raise ValueError(f'{name} must be "user" or "root", not {value!r}'[:200])
    return str(value)


def file_mode(name: str, value: object) -> int:
    """`value` as permission bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {_kind(value)}")
    if not 0 <= value <= 0o7777:
        raise ValueError(f"{name} must be from 0 to 0o7777, not {value:#o}")
    return value


def signal_number(name: str, value: object) -> int:
    """`value` as the number of a signal."""
    number = positive_integer(name, value)
    if number > _LAST_SIGNAL:
        raise ValueError(f"{name} must be at most {_LAST_SIGNAL}, not {number}")
    return number


def variable_name(value: object) -> str:
    """`value` as the name of an environment variable."""
    name = text("name", value)
    if not name or "=" in name:
        raise ValueError(f"name must be non-empty and without '=', not {name!r}")
    return name


def variables(name: str, value: object) -> dict[str, str]:
    """`value` as a copy of a mapping of environment variables; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping of str to str, not {_kind(value)}")
    return {variable_name(key): text(f"{name}[{key!r}]", item) for key, item in value.items()}


def packages(name: str, value: object) -> tuple[str, ...]:
    """`value` as the requirements of packages: a sequence of texts such as `numpy>=2`, or the text
    "all", which becomes a sequence of one; None is an empty sequence."""
    if value is None:
        return ()
    if value == "all":
        return ("all",)
    if isinstance(value, str):
        raise ValueError(f'{name} must be a list of packages or "all", not {value!r}')
    if isinstance(value, bytes | bytearray) or not isinstance(value, Sequence):
        raise TypeError(f'{name} must be a list of packages or "all", not {_kind(value)}')
    return requirements(name, value)


def requirements(name: str, value: Sequence[object]) -> tuple[str, ...]:
    """`value` as requirements of packages."""
    if len(value) > _PACKAGES_MAX:
        raise ValueError(f"{name} must have at most {_PACKAGES_MAX} entries, not {len(value)}")
    words = tuple(non_empty_text(f"{name}[{index}]", word) for index, word in enumerate(value))
    for index, word in enumerate(words):
        if len(word) > _REQUIREMENT_LENGTH_MAX:
            raise ValueError(
                f"{name}[{index}] must have at most {_REQUIREMENT_LENGTH_MAX} characters"
            )
    return words


def rules(name: str, value: object) -> tuple[str, ...]:
    """`value` as a tuple of network rules; the policy checks their form."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise TypeError(
            f'{name} must be a list of rules such as ["api.example.com:443"], not {_kind(value)}'
        )
    for index, rule in enumerate(value):
        if not isinstance(rule, str):
            raise TypeError(f"{name}[{index}] must be a str, not {_kind(rule)}")
    return tuple(value)


def seconds(name: str, value: object) -> float:
    """`value` as a positive number of seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds, not {_kind(value)}")
    if not 0 < value <= LONGEST_TIMEOUT_MS / 1000:
        raise ValueError(f"{name} must be a positive number of seconds, not {value}")
    return float(value)


def metadata(name: str, value: object) -> dict[str, str]:
    """`value` as names and values of a sandbox on a server."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping of str to str, not {_kind(value)}")
    for key, item in value.items():
        if not isinstance(key, str) or not isinstance(item, str):
            raise TypeError(f"{name} must be a mapping of str to str")
        if not 0 < len(key) <= _METADATA_NAME_MAX or len(item) > _METADATA_VALUE_MAX:
            raise ValueError(
                f"{name}: names have 1 to {_METADATA_NAME_MAX} characters, values at most "
                f"{_METADATA_VALUE_MAX}: {key[:80]!r}"
            )
    if len(value) > _METADATA_MAX:
        raise ValueError(f"{name} may have {_METADATA_MAX} entries, not {len(value)}")
    return dict(value)


def nothing_else(id: str, **given: object) -> None:
    """Refuse arguments that have no meaning with an `id`."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is for a new sandbox; {id[:64]!r} exists already")


def callback(name: str, value: object) -> None:
    """Check that `value` can be called, or is None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, not {_kind(value)}")


def _encoded(value: str) -> bytes:
    """`value` as bytes for the guest; surrogate escapes become the original bytes."""
    return value.encode("utf-8", "surrogateescape")


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
