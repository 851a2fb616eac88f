"""Sandboxes: create, list, show, kill; their variables and usage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import UnsetType

from wasmsand.http.failures import ApiFailure
from wasmsand.http.handlers.describing import describe
from wasmsand.http.life_messages import ListSandboxes, PauseSandbox, ResumeSandbox, SetTimeout
from wasmsand.http.messages import (
    ChangeVariables,
    CreateSandbox,
    Killed,
    SandboxList,
    SandboxState,
    Variables,
    option_fields,
)
from wasmsand.http.network_ceilings import within_ceiling
from wasmsand.http.network_messages import NetworkWanted
from wasmsand.http.registry import Entry
from wasmsand.http.routing import Call
from wasmsand.http.served import ServedSandbox, check_variables
from wasmsand.http.service import Service
from wasmsand.http.settings import Settings
from wasmsand.sdk import arguments
from wasmsand.sdk.environment import Environment
from wasmsand.sdk.network import Network, network_from_plain
from wasmsand.sdk.options import SandboxOptions
from wasmsand.sdk.results import Usage

_END_SECONDS = 2.0
"""How long a DELETE waits for the sandbox's end."""


async def create(call: Call[None, CreateSandbox]) -> SandboxState:
    """`POST /v1/sandboxes`"""
    if call.body.snapshot is not None:
        # Imported here, because copies are registered as new sandboxes are.
        from wasmsand.http.handlers.copies import create_from

        return await create_from(call)
    service, settings, wanted = call.service, call.service.settings, call.body
    options = options_of(wanted, settings)
    check_limits(options, settings)
    if options.network is not None:
        network = within_ceiling(options.network, service, call.owner)
        options = replace(options, network=network)
    isolation = settings.isolation_of(call.owner)

    def make() -> ServedSandbox:
        return ServedSandbox(options, settings.max_command_seconds, isolation)

    entry = await register(call, wanted, options, make)
    return describe(service, entry)


async def register(
    call: Call[Any, Any],
    wanted: CreateSandbox,
    options: SandboxOptions,
    make: Callable[[], ServedSandbox],
    note: Callable[[Entry], object] | None = None,
) -> Entry:
    """Register a new sandbox, which `make` creates on a thread. With a store, it is stored before
    its id is told. `note` is called before that."""
    service, settings = call.service, call.service.settings
    entry = await service.registry.create(
        call.owner,
        lambda: call.in_file_thread(make),
        options,
        service.reserve,
        idle_seconds=shorter(wanted.idle_seconds, settings.most_idle_seconds),
        lifetime_seconds=shorter(wanted.lifetime_seconds, settings.most_lifetime_seconds),
        metadata=wanted.metadata,
    )
    service.metrics.sandboxes_created.labels(call.owner.name).inc()
    if note is not None:
        note(entry)
    await store_new(service, entry)
    return entry


async def store_new(service: Service, entry: Entry) -> None:
    """Store a new sandbox. On failure, kill it."""
    if service.keeping is None:
        return
    try:
        with service.registry.use(entry, changes=False):
            await service.keeping.store(entry)
    except BaseException:
        if service.registry.take(entry):
            service.end(entry, "killed")
        raise


def shorter(wanted: float | None, most: float) -> float:
    """What a client wants, up to the server's maximum."""
    return most if wanted is None else min(wanted, most)


def options_of(wanted: CreateSandbox, settings: Settings) -> SandboxOptions:
    given: dict[str, Any] = {"packages": settings.packages}
    given |= {
        name: value
        for name, _, _ in option_fields()
        if not isinstance(value := getattr(wanted, name), UnsetType)
    }
    if isinstance(given.get("network"), NetworkWanted):
        given["network"] = network_wanted(given["network"])
    return SandboxOptions(**given)


def network_wanted(wanted: NetworkWanted) -> Network:
    """The network that a client wants."""
    fields = msgspec.structs.asdict(wanted)
    set_fields = {k: v for k, v in fields.items() if not isinstance(v, UnsetType)}
    return network_from_plain("network", set_fields)


def check_limits(options: SandboxOptions, settings: Settings) -> None:
    """Check limits that no quota bounds but that cost the server memory."""
    for name, _, _ in option_fields():
        most = settings.most_of(name)
        if most is not None and getattr(options, name) > most:
            raise ValueError(f"{name} must be at most {most} on this server")


async def listing(call: Call[ListSandboxes, None]) -> SandboxList:
    """`GET /v1/sandboxes`"""
    wanted = _wanted_metadata(call.query.metadata).items()
    found, is_after = [], call.query.after is None
    for entry in call.service.registry.owned(call.owner):
        if not is_after:
            is_after = entry.id == call.query.after
            continue
        described = describe(call.service, entry)
        if wanted <= entry.metadata.items() and call.query.state in (None, described.state):
            found.append(described)
    return SandboxList(sandboxes=found[: call.query.limit])


def _wanted_metadata(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text, strict_parsing=bool(text), keep_blank_values=True))
    except ValueError:
        raise ApiFailure(
            400, "invalid_value", "metadata must be like user=alice&app=chat, percent-encoded"
        ) from None


async def state(call: Call[None, None]) -> SandboxState:
    """`GET /v1/sandboxes/{sandbox}`"""
    return describe(call.service, call.entry)


async def kill(call: Call[None, None]) -> Killed:
    """`DELETE /v1/sandboxes/{sandbox}`"""
    entry = call.entry
    if call.service.registry.take(entry):
        # The sandbox is out of the registry. Wait briefly for its end, so that a client that
        # creates another one right after finds its quota free.
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await asyncio.wait({call.service.end(entry, "killed")})
                await call.service.quotas.settled()
    return Killed()


async def pause(call: Call[None, PauseSandbox]) -> SandboxState:
    """`POST /v1/sandboxes/{sandbox}/pause`"""
    keeping = call.service.keeping
    if keeping is None:
        raise ApiFailure(
            501,
            "unsupported",
            "the server has no store to pause sandboxes to; start it with --store DIR",
        )
    with call.running_command():
        await keeping.pause(call.entry, drops=call.body.running == "drop")
    return describe(call.service, call.entry)


async def resume(call: Call[None, ResumeSandbox]) -> SandboxState:
    """`POST /v1/sandboxes/{sandbox}/resume`"""
    entry, wanted, keeping = call.entry, call.body, call.service.keeping
    if keeping is not None and entry.live is None:
        if wanted.network is not None:
            given = wanted.network
            network = Network(allow=given) if isinstance(given, list) else network_wanted(given)
            within_ceiling(network, call.service, call.owner)
            entry.network, entry.missing_secrets = network, ()
        await keeping.wake(entry, only_files=wanted.only_files)
    return describe(call.service, entry)


async def set_timeout(call: Call[None, SetTimeout]) -> SandboxState:
    """`POST /v1/sandboxes/{sandbox}/timeout`"""
    service, entry = call.service, call.entry
    oldest = entry.created + service.settings.most_lifetime_seconds - time.time()
    service.registry.end_after(entry, max(0.0, min(call.body.seconds, oldest)))
    if service.keeping is not None:
        await service.keeping.update(entry)
    return describe(service, entry)


async def usage(call: Call[None, None]) -> Usage:
    """`GET /v1/sandboxes/{sandbox}/usage`"""
    return await call.in_file_thread(call.entry.sandbox.backend.usage)


async def variables(call: Call[None, None]) -> Variables:
    """`GET /v1/sandboxes/{sandbox}/env`"""
    return _variables(call.entry.sandbox.env)


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
    return _variables(environment)


def _variables(environment: Environment) -> Variables:
    return Variables(env=environment.all(), set=environment.chosen())
