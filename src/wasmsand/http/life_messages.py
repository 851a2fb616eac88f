"""Types of JSON requests about the life of sandboxes. Rules: see `messages`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from wasmsand.http.message_types import RequestMessage, Seconds
from wasmsand.http.network_messages import NetworkWanted, Rules


class ListSandboxes(RequestMessage):
    """Which sandboxes to list."""

    metadata: Annotated[str, Meta(max_length=8192)] = ""
    """Only those that have these names and values: `user=alice&app=chat`, percent-encoded."""
    state: Literal["running", "paused"] | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    after: Annotated[str, Meta(max_length=64)] | None = None
    """Only those after the sandbox with this id."""


class SetTimeout(RequestMessage):
    """When a sandbox ends."""

    seconds: Seconds
    """From now; at most until the server's maximum age."""


class PauseSandbox(RequestMessage):
    """How to pause a sandbox."""

    running: Literal["refuse", "drop"] = "refuse"
    """What to do if a command runs, or a session cannot be stored: refuse, or end it."""


class ResumeSandbox(RequestMessage):
    """How to resume a sandbox."""

    network: NetworkWanted | Rules | None = None
    """The network that it has from now on, if it is paused. After a restart of the server, a
    sandbox with secrets needs them again."""
    only_files: bool = False
    """Leave out the sessions: for a state of another version of the programs."""


class LoadSandbox(RequestMessage):
    """How to create a sandbox from a saved one."""

    options: Annotated[str, Meta(max_length=65536)] = "{}"
    """The body of `POST /v1/sandboxes`, as JSON text, without `env` and `cwd`, which are in the
    file. The file's own limits are not used."""
    only_files: bool = False
    """Leave out the sessions: for a file of another version of the programs."""
    as_commands: bool = False
    """Make started commands of the sessions, for a client that drives them itself."""
