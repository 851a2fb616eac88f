"""What a response says of a sandbox."""

from __future__ import annotations

from wasmsand.http.messages import Accounting, SandboxState
from wasmsand.http.registry import Entry
from wasmsand.http.service import Service
from wasmsand.sdk.options import SETTINGS

_LIMITS = tuple(option.name for option in SETTINGS if option.is_limit)


def describe(service: Service, entry: Entry) -> SandboxState:
    """A sandbox."""
    options = entry.options
    return SandboxState(
        id=entry.id,
        state="paused" if entry.live is None else "running",
        metadata=dict(entry.metadata),
        created_at=entry.created,
        expires_in_seconds=service.registry.seconds_left(entry),
        cwd=options.cwd,
        timeout_ms=options.timeout_ms,
        max_command_seconds=service.settings.max_command_seconds,
        limits={name: getattr(options, name) for name in _LIMITS},
        accounting=Accounting(
            commands=entry.account.commands,
            command_seconds=entry.account.command_seconds,
            sandbox_seconds=service.registry.seconds_in_memory(entry),
        ),
        is_stored=service.keeping is not None,
    )
