"""Sandboxes: create, list, show, kill; their variables and usage."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UnsetType

from wasmsand.http.handlers.copies import create_from
from wasmsand.http.handlers.describing import describe
from wasmsand.http.messages import (
    ChangeVariables,
    CreateSandbox,
    Killed,
    SandboxList,
    SandboxState,
    Variables,
    option_fields,
)
from wasmsand.http.network_messages import NetworkWanted
from wasmsand.http.routing import Call
from wasmsand.http.served import ServedSandbox, check_variables
from wasmsand.http.service import Service
from wasmsand.http.settings import Settings
from wasmsand.http.tokens import Token
from wasmsand.sdk import arguments
from wasmsand.sdk.network import Network, NetworkEvent, network_from_plain
from wasmsand.sdk.options import SandboxOptions
from wasmsand.sdk.results import Usage

_END_SECONDS = 2.0
"""How long a DELETE waits for the sandbox's end."""


async def create(call: Call[None, CreateSandbox]) -> SandboxState:
    """`POST /v1/sandboxes`"""
    if call.body.snapshot is not None:
        return await create_from(call)
    service, settings, wanted = call.service, call.service.settings, call.body
    options = _options(wanted, settings)
    _check_limits(options, settings)
    if options.network is not None:
        network = within_ceiling(options.network, service, call.owner)
        options = replace(options, network=network)
    isolation = settings.isolation_of(call.owner)

    def make() -> ServedSandbox:
        return ServedSandbox(options, settings.max_command_seconds, isolation)

    entry = await service.registry.create(
        call.owner,
        lambda: call.in_file_thread(make),
        reserved_bytes=options.memory_limit_bytes + options.fs_limit_bytes,
        idle_seconds=min(wanted.idle_seconds or settings.idle_seconds, settings.idle_seconds),
        lifetime_seconds=min(
            wanted.lifetime_seconds or settings.lifetime_seconds, settings.lifetime_seconds
        ),
    )
    service.metrics.sandboxes_created.labels(call.owner.name).inc()
    return describe(service, entry)


def _options(wanted: CreateSandbox, settings: Settings) -> SandboxOptions:
    given: dict[str, Any] = {"packages": settings.packages}
    given |= {
        name: value
        for name, _, _ in option_fields()
        if not isinstance(value := getattr(wanted, name), UnsetType)
    }
    if isinstance(given.get("network"), NetworkWanted):
        fields = msgspec.structs.asdict(given["network"])
        set_fields = {k: v for k, v in fields.items() if not isinstance(v, UnsetType)}
        given["network"] = network_from_plain("network", set_fields)
    return SandboxOptions(**given)


def within_ceiling(network: Network, service: Service, owner: Token) -> Network:
    """A client's network under the ceiling of its token; its events are counted. Raises
    `ValueError` if it wants more."""

    def count(event: NetworkEvent) -> None:
        service.metrics.count_network(owner.name, event)

    return replace(network, ceiling=service.settings.network_of(owner), on_event=count)


def _check_limits(options: SandboxOptions, settings: Settings) -> None:
    """Check limits that no quota bounds but that cost the server memory."""
    for name, _, _ in option_fields():
        most = settings.most_of(name)
        if most is not None and getattr(options, name) > most:
            raise ValueError(f"{name} must be at most {most} on this server")


async def listing(call: Call[None, None]) -> SandboxList:
    """`GET /v1/sandboxes`"""
    owned = call.service.registry.owned(call.owner)
    return SandboxList(sandboxes=[describe(call.service, entry) for entry in owned])


async def state(call: Call[None, None]) -> SandboxState:
    """`GET /v1/sandboxes/{sandbox}`"""
    return describe(call.service, call.entry)


async def kill(call: Call[None, None]) -> Killed:
    """`DELETE /v1/sandboxes/{sandbox}`"""
    entry = call.entry
    if call.service.registry.take(entry):
        # The sandbox is out of the registry. Wait briefly for its end, so that a client that
        # creates another one right after finds its quota free.
        await asyncio.wait({call.service.end(entry, "killed")}, timeout=_END_SECONDS)
    return Killed()


async def usage(call: Call[None, None]) -> Usage:
    """`GET /v1/sandboxes/{sandbox}/usage`"""
    return await call.in_file_thread(call.entry.sandbox.backend.usage)


async def variables(call: Call[None, None]) -> Variables:
    """`GET /v1/sandboxes/{sandbox}/env`"""
    return Variables(env=call.entry.sandbox.env.all())


async def change_variables(call: Call[None, ChangeVariables]) -> Variables:
    """`PATCH /v1/sandboxes/{sandbox}/env`"""
    environment = call.entry.sandbox.env
    # Check everything first: make all changes or none.
    arguments.variables("set", call.body.set)
    check_variables({**environment.chosen(), **call.body.set})
    for name in [arguments.variable_name(name) for name in call.body.unset]:
        environment.unset(name)
    for name, value in call.body.set.items():
        environment.set(name, value)
    return Variables(env=environment.all())
