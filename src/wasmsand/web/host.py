"""What the JavaScript side offers to a machine (web/src/kernel).

Owns `WebHost`. Rules: as for `JavaScriptHost`: only numbers and strings cross the border.
"""

from __future__ import annotations

from typing import Final, Protocol

from wasmsand.engine.javascript.host import JavaScriptHost

BLOCKED: Final = 1 << 40
"""The answer to a call that waits: a later `answer` wakes the guest."""
LEAVE: Final = BLOCKED + 1
"""The guest leaves its program: its process has ended, or executes another program."""
HANDLE: Final = BLOCKED + 2
"""After a trap: the guest runs its signal handlers first."""


class JavaScriptBuffer(Protocol):
    """Bytes of JavaScript."""

    def to_py(self) -> memoryview:
        """The bytes."""


class WebHost(JavaScriptHost, Protocol):
    """The functions of the JavaScript side."""

    def start_guest(
        self,
        guest: int,
        module: int,
        memory: int,
        entry: str,
        variables: str,
        buffer: int,
        argument: int,
    ) -> int:
        """Run a program in a worker: the number of the guest. If `guest` is not -1, that guest goes
        on with this program when it has left the last one. `variables` has a line for each global
        to set: name, tab, value. `buffer` is the Asyncify buffer of a fork, or -1; `argument`
        that of the entry of a thread, or -1."""

    def answer(self, guest: int, result: int) -> None:
        """Answer the call for which a guest waits."""

    def end_guest(self, guest: int, computing: bool) -> None:
        """The guest has ended. If it computes, its worker is terminated."""

    def fetch_module(self, key: str) -> None:
        """Fetch and compile a program of the image; `WebMachine.module_fetched` gets the result."""

    def fetch_memory(self, key: str) -> None:
        """Fetch a stored memory; `WebMachine.memory_fetched` gets the result."""

    def show_packages(self) -> str:
        """The directory with the image of compiled packages; an empty string if there is none."""

    def has_bytes(self, path: str, start: int, count: int) -> bool:
        """Whether these bytes of a file of the image can be read without waiting."""

    def fetch_bytes(self, key: str, path: str, start: int, count: int) -> None:
        """Fetch them; `Service.bytes_came` gets the key when they are there, or if that failed."""

    def kernel_bytes(self) -> int:
        """The memory of this Python."""

    def wake_at(self, milliseconds: float) -> None:
        """Call `WebMachine.time_passed` after so many milliseconds; replaces the last request. A
        negative number cancels it."""

    def directory_open(self, path: str) -> str:
        """Open a directory of the host: JSON with `handle`, `uid`, `gid` (the host's own) and
        `facts`, or with `error`."""

    def directory_look(self, handle: int, what: str, path: str, names: str) -> str:
        """Look at what has this path below a directory, a JSON array of names: `facts` of it;
        those of the `names` in it; or `list`, pairs of all names in it and their facts. The facts
        are an array of texts, as `NodeDirectory` reads them, or null. JSON with `error` if that
        fails."""

    def directory_read(
        self, handle: int, path: str, inode: str, offset: int, size: int
    ) -> JavaScriptBuffer | str:
        """Bytes of a regular file with this inode number; the name of an errno if that fails."""

    def directory_close(self, handle: int) -> None:
        """Close a directory."""

    def make_authority(self) -> None:
        """Make a certificate authority; `Service.authority_made` gets its certificate."""

    def finds_names(self) -> bool:
        """Whether the host looks up names, and asks `Service.may_use` about their addresses."""

    def fetch_start(
        self, number: int, method: str, url: str, headers: str, body: bytes, place: str
    ) -> None:
        """Make a request; `headers` is a JSON array of pairs. If `place` is not empty, connect to
        this address and port, separated by a space, instead of those in the URL. `Service.heard`
        gets what happens: `head`, `data`, `end` or `fail`."""

    def fetch_more(self, number: int) -> None:
        """Get the next piece of the response's body."""

    def fetch_stop(self, number: int) -> None:
        """The request is over, or given up."""

    def tls_open(self, number: int, server_name: str) -> None:
        """A guest begins TLS with a host. `Service.heard` gets `ready`, `plain`, `records`,
        `closed` or `fail`."""

    def tls_receive(self, number: int, data: bytes) -> None:
        """The guest has sent these records."""

    def tls_send(self, number: int, data: bytes) -> None:
        """Encrypt this for the guest."""

    def tls_finish(self, number: int) -> None:
        """Make the closing alert."""

    def tls_close(self, number: int) -> None:
        """The connection is over."""

    def reply(self, number: int, result: str, data: bytes | None) -> None:
        """Answer a request of the page."""

    def fail(self, number: int, error: str) -> None:
        """Answer a request of the page with an error."""

    def notify(self, handle: int, event: str, data: bytes | None) -> None:
        """Tell the page of an event of a started command, a terminal or a session."""
