"""Quotas of all workers together, and which worker has which sandbox.

Owns `Ledger`. Rules: used on the event loop of the front process only. What a worker reserved is
known by worker and token, so a worker can give back only what it has, and all of it is given back
when the worker dies. A sandbox belongs to a slot, not to a process: the worker that replaces a dead
one finds the stored sandboxes of its slot, also one that the dead worker was about to delete. The
ids of lost sandboxes are remembered for a while, so that their clients learn what happened.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wasmsand.http.quotas import Quotas
from wasmsand.http.store import is_state_id
from wasmsand.http.tokens import ANYBODY, Token, TokenTable

_LOST_MAX: Final = 10_000
_HOMES_MAX: Final = 1_000_000


class WorkerMisbehaves(Exception):
    """A worker says what it may not say."""


@dataclass(slots=True)
class _Held:
    """What one worker has reserved for one token."""

    owner: Token
    sandboxes: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LostSandbox:
    """A sandbox whose worker has died."""

    owner: str
    exit_status: int


@dataclass(slots=True)
class Account:
    """What one slot has reserved."""

    tenant: str | None
    """The only token that it may speak for; None means all."""
    held: dict[str, _Held] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    """The tokens of its sandboxes and snapshots, by their ids."""

    @property
    def sandboxes(self) -> int:
        """Sandboxes in memory."""
        return sum(held.sandboxes for held in self.held.values())


class Ledger:
    """What all workers have."""

    def __init__(self, quotas: Quotas, tokens: TokenTable) -> None:
        self.quotas = quotas
        self.tokens = tokens
        self._homes: dict[str, Account] = {}
        self._lost: OrderedDict[str, LostSandbox] = OrderedDict()

    def home(self, identity: str) -> Account | None:
        """The account that has a sandbox or a snapshot."""
        return self._homes.get(identity)

    def lost(self, owner: Token, identity: str) -> LostSandbox | None:
        """What is known of a sandbox of `owner` that was lost."""
        found = self._lost.get(identity)
        return found if found is not None and found.owner == owner.name else None

    def settle(self, account: Account, identity: str, owner: str) -> None:
        """A sandbox or a snapshot of the store belongs to `account`."""
        self._homes[identity] = account
        account.owners[identity] = owner

    def call(self, account: Account, name: str, values: dict[str, Any]) -> None:
        """A call of a worker. Raises `ApiFailure`, `WorkerMisbehaves`."""
        if name == "forget":
            self._forget(account, str(values["identity"]))
            return
        held, size = self._held(account, str(values["owner"])), _size(values["size"])
        owner = held.owner
        if name == "reserve":
            self._claim(account, str(values["identity"]), owner)
            self.quotas.reserve_sandbox(owner, size)
            held.sandboxes += 1
            held.bytes += size
        elif name == "release":
            if not held.sandboxes or size > held.bytes:
                raise WorkerMisbehaves(name)
            self.quotas.release_sandbox(owner, size)
            held.sandboxes -= 1
            held.bytes -= size
        elif name == "reserve_snapshot":
            self._claim(account, str(values["identity"]), owner)
            self.quotas.reserve_bytes(owner, size)
            held.bytes += size
        elif name == "release_bytes":
            if size > held.bytes:
                raise WorkerMisbehaves(name)
            self.quotas.release_bytes(owner, size)
            held.bytes -= size
        else:
            raise WorkerMisbehaves(name)

    def _held(self, account: Account, name: str) -> _Held:
        held = account.held.get(name)
        if held is not None:  # its token may have been revoked meanwhile
            held.owner = self.tokens.named(name) or held.owner
            return held
        if account.tenant is not None and name != account.tenant:
            raise WorkerMisbehaves("another tenant")
        owner = ANYBODY if self.tokens.is_open else self.tokens.named(name)
        if owner is None or owner.name != name:
            raise WorkerMisbehaves("unknown owner")
        held = account.held[name] = _Held(owner)
        return held

    def _claim(self, account: Account, identity: str, owner: Token) -> None:
        if not is_state_id(identity) or len(self._homes) >= _HOMES_MAX:
            raise WorkerMisbehaves("id")
        if self._homes.setdefault(identity, account) is not account:
            raise WorkerMisbehaves("the sandbox of another worker")
        account.owners[identity] = owner.name

    def _forget(self, account: Account, identity: str) -> None:
        if self._homes.get(identity) is account:
            del self._homes[identity]
            account.owners.pop(identity, None)

    def died(self, account: Account, exit_status: int, stored: Mapping[str, str]) -> int:
        """The worker of a slot has died; what is in `stored`, ids with their owners, stays with the
        slot. Returns how many sandboxes are lost."""
        for held in account.held.values():
            for _ in range(held.sandboxes):
                self.quotas.release_sandbox(held.owner, 0)
            self.quotas.release_bytes(held.owner, held.bytes)
        account.held.clear()
        lost = [each for each in account.owners if each not in stored]
        for identity in lost:
            self._homes.pop(identity, None)
            owner_name = account.owners.pop(identity)
            if identity.startswith("sbx-"):
                self._lost[identity] = LostSandbox(owner_name, exit_status)
        while len(self._lost) > _LOST_MAX:
            self._lost.popitem(last=False)
        for identity, owner_name in stored.items():
            # The worker may have given up a sandbox, and died before it was deleted. It comes back,
            # and can be deleted again. What another slot has stays there.
            is_known = identity in self._homes or len(self._homes) >= _HOMES_MAX
            if not is_known:
                self.settle(account, identity, owner_name or ANYBODY.name)
        return sum(identity.startswith("sbx-") for identity in lost)


def _size(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise WorkerMisbehaves("size")
    return value
