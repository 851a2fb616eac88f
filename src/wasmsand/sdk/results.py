"""What the API returns: plain, immutable values.

Rules: text is UTF-8 with invalid bytes replaced; the exact bytes are always beside it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of one command."""

    stdout: str
    """Standard output as text; invalid UTF-8 is replaced (see `stdout_bytes`)."""
    stderr: str
    exit_code: int
    """0 to 255; 128 plus the signal's number if a signal ended the command; 124 on a timeout."""
    execution_time_ms: float
    stdout_bytes: bytes = field(default=b"", repr=False)
    stderr_bytes: bytes = field(default=b"", repr=False)
    timed_out: bool = False
    truncated: bool = False
    """Whether output was cut at `max_output_bytes`."""


@dataclass(frozen=True, slots=True)
class MountInfo:
    """Something that is mounted in a sandbox."""

    path: str
    """Where, in the sandbox."""
    source: str | None
    """The directory of this machine; None for a mount in memory."""
    mode: str
    """`read-only`, `read-write`, `overlay` or `memory`."""
    written_bytes: int = 0
    """By how much the sandbox has made files of a `read-write` mount grow."""
    written_inodes: int = 0
    """How many names the sandbox has added to a `read-write` mount."""


@dataclass(frozen=True, slots=True)
class MountDiff:
    """How an overlay differs from the directory of this machine. Paths are relative to the mount;
    those of directories end in a slash.

    Example:
        diff = sandbox.diff("/mnt/repo")
        diff.added, diff.changed, diff.removed
        print(diff.patch)
    """

    path: str
    """Where the overlay is mounted."""
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    conflicts: tuple[str, ...] = ()
    """Those that were changed on this machine too since the sandbox saw them."""
    patch: str = field(default="", repr=False)
    """All changes of text files in the format of `git diff`; binary files are only named."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class NetworkRules:
    """The rules of a sandbox's network, in normal form."""

    allow: tuple[str, ...]
    deny: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PythonError:
    """An exception that ended a program."""

    type: str
    """The name of its class, with the module unless that is `builtins` or `__main__`: `ValueError`,
    `json.decoder.JSONDecodeError`. `InterpreterEnded` if there was no exception because the
    interpreter itself ended."""
    message: str
    traceback: str
    """As Python prints it, with only the frames of the program."""

    def __str__(self) -> str:
        """The last line of a traceback."""
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True)
class DisplayItem:
    """Something that a Python program has displayed, in one or more forms: the value of the last
    expression, what `display()` got, or a figure.

    Example:
        item = session.run("display(HTML('<b>bold</b>'))").results[0]
        item.html, item.formats()
    """

    data: Mapping[str, Any]
    """The forms by MIME type: str for text (and `image/svg+xml`), bytes for images and other binary
    data, a JSON value for `application/json`."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What the program says about the forms, for example the width of an image."""
    is_main: bool = False
    """Whether this is the value of the last expression."""
    display_id: str | None = None
    """The ID that the program gave it. An item that the program updates takes the place of the
    earlier one."""

    @property
    def text(self) -> str | None:
        """The form `text/plain`."""
        return self._text("text/plain")

    @property
    def html(self) -> str | None:
        """The form `text/html`."""
        return self._text("text/html")

    @property
    def markdown(self) -> str | None:
        """The form `text/markdown`."""
        return self._text("text/markdown")

    @property
    def latex(self) -> str | None:
        """The form `text/latex`."""
        return self._text("text/latex")

    @property
    def svg(self) -> str | None:
        """The form `image/svg+xml`."""
        return self._text("image/svg+xml")

    @property
    def javascript(self) -> str | None:
        """The form `application/javascript`."""
        return self._text("application/javascript")

    @property
    def png(self) -> bytes | None:
        """The form `image/png`: the bytes of the file."""
        return self._bytes("image/png")

    @property
    def jpeg(self) -> bytes | None:
        """The form `image/jpeg`."""
        return self._bytes("image/jpeg")

    @property
    def pdf(self) -> bytes | None:
        """The form `application/pdf`."""
        return self._bytes("application/pdf")

    @property
    def json(self) -> Any:
        """The form `application/json`: for a table, a list with a dict for each row."""
        return self.data.get("application/json")

    def formats(self) -> list[str]:
        """The MIME types of the forms."""
        return list(self.data)

    def __getitem__(self, mime: str) -> Any:
        return self.data[mime]

    def as_json(self) -> dict[str, Any]:
        """The forms as notebooks store them: bytes are base64."""
        return {
            mime: base64.b64encode(form).decode("ascii") if isinstance(form, bytes) else form
            for mime, form in self.data.items()
        }

    def _text(self, mime: str) -> str | None:
        form = self.data.get(mime)
        return form if isinstance(form, str) else None

    def _bytes(self, mime: str) -> bytes | None:
        form = self.data.get(mime)
        return form if isinstance(form, bytes) else None

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """For notebooks: an item looks like what it shows."""
        return dict(self.data), dict(self.metadata)


@dataclass(frozen=True, slots=True)
class PythonResult:
    """The result of one call of `PythonSession.run`."""

    stdout: str
    """Standard output as text; invalid UTF-8 is replaced."""
    stderr: str
    value: Any
    """The value of the last expression, if it consists of None, bool, int, float, complex, str,
    bytes, list, tuple, set and dict; a scalar of numpy is a number. Otherwise None, and `repr`
    describes the value."""
    repr: str | None
    """`repr()` of the value; None if there is no value, as in an interactive interpreter."""
    error: PythonError | None
    """The exception that ended the program, or None."""
    execution_time_ms: float
    timed_out: bool = False
    truncated: bool = False
    """Whether output was cut at `max_output_bytes`."""
    results: tuple[DisplayItem, ...] = ()
    """Everything that the program has displayed, in order, and the value of the last expression."""
    has_value: bool = False
    """Whether `value` is the value of the last expression. False if there is none, and if the value
    cannot leave the sandbox: a DataFrame, an object of the program, or more than 1 MiB."""

    @property
    def main(self) -> DisplayItem | None:
        """The value of the last expression, in all its forms; None if there is no value."""
        return next((item for item in self.results if item.is_main), None)

    @property
    def text(self) -> str | None:
        """The value of the last expression as text."""
        main = self.main
        return None if main is None else main.text


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file, directory or other entry of the file system."""

    name: str
    type: str
    """`"file"`, `"dir"`, `"symlink"`, `"fifo"`, `"socket"` or `"device"`."""
    size: int
    """Bytes; 0 for a directory."""
    mode: int = 0
    """Permission bits, for example 0o644."""
    mtime_ns: int = 0
    """When the content last changed, in nanoseconds since 1970."""
    path: str = ""
    """The absolute path under which it was found."""


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process of a sandbox."""

    pid: int
    parent_pid: int
    command_pid: int
    """The process that the host started: this one or its ancestor."""
    argv: tuple[str, ...]
    state: str
    """One letter, as `ps` shows it: R running, S sleeping, T stopped, Z ended."""
    memory_bytes: int
    cpu_time_ms: float


@dataclass(frozen=True, slots=True)
class PackageInfo:
    """One Python package."""

    name: str
    """Its normalised name, for example `scikit-learn`."""
    version: str
    location: str
    """The directory of the sandbox that has its files."""
    summary: str = ""
    native: bool = False
    """Whether it has native code, without which it does not work."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a sandbox uses, each value beside its limit."""

    fs_bytes: int
    fs_limit_bytes: int
    inodes: int
    max_inodes: int
    processes: int
    max_processes: int
    memory_bytes: int
    """Host memory of the programs, of the engine's data for them, and `kernel_bytes`."""
    memory_limit_bytes: int
    cpu_time_ms: float
    """CPU time of all processes since the sandbox was created."""
    kernel_bytes: int
    """Memory of open files, sockets and other kernel objects, and of data queued in pipes and
    sockets."""


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """A sandbox, as `info` and `Sandbox.list` describe it."""

    id: str
    state: Literal["running", "paused"]
    """A paused sandbox is on disk; its next use resumes it."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """What was given to `Sandbox.connect`."""
    created: float | None = None
    """On a server: when it was created, in seconds since 1970."""
    expires_in_seconds: float | None = None
    """On a server: time until it is killed if it is not used again."""


@dataclass(frozen=True, slots=True)
class PortInfo:
    """A TCP port of the sandbox on which a program listens."""

    port: int
    address: str
    """The address that the program listens on, such as `"127.0.0.1"`; `"0.0.0.0"` or `"::"` for
    every address of the sandbox."""
    pid: int
    """The process that listens."""
