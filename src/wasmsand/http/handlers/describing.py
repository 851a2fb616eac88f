"""What a response says of a sandbox."""

from __future__ import annotations

from wasmsand.http.messages import SandboxState
from wasmsand.http.registry import Entry
from wasmsand.http.service import Service


def describe(service: Service, entry: Entry) -> SandboxState:
    """A live sandbox."""
    options = entry.sandbox.options
    return SandboxState(
        id=entry.id,
        created_at=entry.created,
        expires_in_seconds=service.registry.seconds_left(entry),
        cwd=options.cwd,
        timeout_ms=options.timeout_ms,
        max_command_seconds=service.settings.max_command_seconds,
    )
