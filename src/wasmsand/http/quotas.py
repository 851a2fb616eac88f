"""Quotas: what each token uses, and whether it may use more.

Rules: used on the event loop only, so there is no lock; a resource is reserved before it is
created; a refusal is 429 (the token's quota) or 503 (the server's limit), names the option
to raise, and says how long to wait if waiting helps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from wasmsand.http.failures import ApiFailure
from wasmsand.http.host_gate import HostGate
from wasmsand.http.tokens import Token

_DAY_SECONDS = 86_400.0


@dataclass(slots=True)
class Share:
    """What one token uses now."""

    allowance: float
    """Requests that it may send at once: grows by its rate, up to one second's worth."""
    counted: float
    """When `allowance` was computed."""
    sandboxes: int = 0
    bytes: int = 0
    running_commands: int = 0
    running_in: dict[str, int] = field(default_factory=dict)
    """The running commands of each sandbox."""
    hanging: int = 0
    """Sandboxes that were killed and have not ended in time."""
    sandbox_seconds: float = 0.0
    """Seconds of all its sandboxes in memory, since the server started."""
    seconds_debt: float = 0.0
    """Seconds that its quota of a day does not cover yet; shrinks as time passes."""
    settled: float = 0.0
    """When both were computed."""


class CommandPlace:
    """A running command's place in its token's quota. The place is given back when all its users
    have released it: the request, the thread that works for it, the response being sent."""

    __slots__ = ("_sandbox", "_share", "_users")

    def __init__(self, share: Share, sandbox: str) -> None:
        self._share = share
        self._sandbox = sandbox
        self._users = 1
        share.running_commands += 1
        share.running_in[sandbox] = share.running_in.get(sandbox, 0) + 1

    def keep(self) -> CommandPlace:
        """Add a user, who must release it too."""
        self._users += 1
        return self

    def release(self, _done: object = None) -> None:
        """Remove a user; the last one gives the place back."""
        self._users -= 1
        if not self._users:
            share, sandbox = self._share, self._sandbox
            share.running_commands -= 1
            share.running_in[sandbox] -= 1
            if not share.running_in[sandbox]:
                del share.running_in[sandbox]


class Quotas:
    """What all tokens use."""

    def __init__(
        self,
        max_sandboxes: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        gate: HostGate | None = None,
    ) -> None:
        """`max_sandboxes` bounds the sandboxes of all tokens together; `gate` refuses sandboxes
        while the host is full."""
        self._max_sandboxes = max_sandboxes
        self._gate = gate
        self._clock = clock
        self._shares: dict[str, Share] = {}
        self._sandboxes = 0

    def share(self, owner: Token) -> Share:
        """What `owner` uses."""
        share = self._shares.get(owner.name)
        if share is None:
            now = self._clock()
            share = Share(_burst(owner), now, settled=now)
            self._shares[owner.name] = share
        return share

    def count_request(self, owner: Token) -> None:
        """Count a request of `owner` against its rate. Raises `rate_limited`."""
        share, rate, now = self.share(owner), owner.quota.requests_per_second, self._clock()
        share.allowance = min(_burst(owner), share.allowance + (now - share.counted) * rate)
        share.counted = now
        if share.allowance < 1:
            raise ApiFailure(
                429,
                "rate_limited",
                f"more than {rate:g} requests per second; slow down, or raise "
                f"requests_per_second of {owner.name}",
                retry_after=(1 - share.allowance) / rate,
            )
        share.allowance -= 1

    @contextmanager
    def running_command(self, owner: Token, sandbox: str) -> Iterator[CommandPlace]:
        """Count a command of `owner` that runs or waits in the queue. Raises `quota_exceeded`.
        One sandbox may use three quarters of its token's quota, so that a sandbox that hangs
        leaves room for the others."""
        share, most = self.share(owner), owner.quota.max_running_commands
        if share.running_commands >= most:
            raise ApiFailure(
                429,
                "quota_exceeded",
                f"{most} commands run already; wait for one to end, or raise "
                f"max_running_commands of {owner.name}",
                retry_after=1,
            )
        in_one = max(1, most * 3 // 4)
        if share.running_in.get(sandbox, 0) >= in_one:
            raise ApiFailure(
                429,
                "quota_exceeded",
                f"{in_one} commands run in this sandbox already; wait for one to end, use "
                f"another sandbox, or raise max_running_commands of {owner.name}",
                retry_after=1,
            )
        place = CommandPlace(share, sandbox)
        try:
            yield place
        finally:
            place.release()

    async def reserve(self, owner: Token, size: int, identity: str) -> None:
        """Reserve a sandbox that will have this id. Raises what `reserve_sandbox` raises."""
        self.reserve_sandbox(owner, size)

    async def reserve_snapshot(self, owner: Token, size: int, identity: str) -> None:
        """Count a snapshot that will have this id. Raises `quota_exceeded`."""
        self.reserve_bytes(owner, size)

    def forget(self, identity: str) -> None:
        """A sandbox or a snapshot has ended."""

    async def settled(self) -> None:
        """Wait until everybody who counts knows what was released."""

    def reserve_sandbox(self, owner: Token, size: int) -> None:
        """Reserve a sandbox that may grow to `size` bytes. Raises `quota_exceeded` or
        `server_full`."""
        share, quota = self.share(owner), owner.quota
        if share.sandboxes >= quota.max_sandboxes:
            raise ApiFailure(
                429,
                "quota_exceeded",
                f"{quota.max_sandboxes} sandboxes exist already; kill one, or raise "
                f"max_sandboxes of {owner.name}",
            )
        if share.bytes + size > quota.max_memory_bytes:
            raise ApiFailure(
                429,
                "quota_exceeded",
                f"{size} bytes for this sandbox (memory_limit_bytes + fs_limit_bytes) and "
                f"{share.bytes} for the others exceed {quota.max_memory_bytes}; lower its limits, "
                f"kill a sandbox, or raise max_memory_bytes of {owner.name}",
            )
        if share.hanging >= min(quota.max_sandboxes, self._max_sandboxes):
            raise ApiFailure(
                429,
                "quota_exceeded",
                f"{share.hanging} sandboxes of {owner.name} were killed and have not ended yet",
                retry_after=30,
            )
        if self._sandboxes >= self._max_sandboxes:
            raise ApiFailure(
                503,
                "server_full",
                f"the server already has {self._max_sandboxes} sandboxes; try later, or start it "
                "with a larger --max-sandboxes",
                retry_after=5,
            )
        self._check_seconds(owner, share)
        if self._gate is not None:
            self._gate.admit()
        self._settle(owner, share)
        share.sandboxes += 1
        share.bytes += size
        self._sandboxes += 1

    def reserve_bytes(self, owner: Token, size: int) -> None:
        """Count the bytes of a snapshot. Raises `quota_exceeded`."""
        share, quota = self.share(owner), owner.quota
        if share.bytes + size > quota.max_memory_bytes:
            raise ApiFailure(
                429,
                "quota_exceeded",
                f"{size} bytes for this snapshot and {share.bytes} for the sandboxes and other "
                f"snapshots exceed {quota.max_memory_bytes}; delete a snapshot, kill a sandbox, or "
                f"raise max_memory_bytes of {owner.name}",
            )
        share.bytes += size

    def release_bytes(self, owner: Token, size: int) -> None:
        """Give back what `reserve_bytes` reserved."""
        self.share(owner).bytes -= size

    def count_hanging(self, owner: Token, change: int) -> None:
        """A killed sandbox has not ended in time (1), or has ended late (-1)."""
        self.share(owner).hanging += change

    def release_sandbox(self, owner: Token, size: int) -> None:
        """Give back what `reserve_sandbox` reserved."""
        share = self.share(owner)
        self._settle(owner, share)
        share.sandboxes -= 1
        share.bytes -= size
        self._sandboxes -= 1

    def sandbox_seconds(self, owner: Token) -> float:
        """Seconds of all sandboxes of `owner` in memory, since the server started."""
        share = self.share(owner)
        self._settle(owner, share)
        return share.sandbox_seconds

    def all_sandbox_seconds(self) -> float:
        """Seconds of all sandboxes in memory, since the server started."""
        now = self._clock()
        return sum(
            share.sandbox_seconds + share.sandboxes * (now - share.settled)
            for share in self._shares.values()
        )

    def _settle(self, owner: Token, share: Share) -> None:
        """Count the seconds since the last change of the number of sandboxes."""
        now = self._clock()
        passed, share.settled = now - share.settled, now
        share.sandbox_seconds += passed * share.sandboxes
        earned = passed * owner.quota.sandbox_seconds_per_day / _DAY_SECONDS
        share.seconds_debt = max(0.0, share.seconds_debt + passed * share.sandboxes - earned)

    def _check_seconds(self, owner: Token, share: Share) -> None:
        self._settle(owner, share)
        most = owner.quota.sandbox_seconds_per_day
        over = share.seconds_debt - most
        if over >= 0:
            raise ApiFailure(
                429,
                "quota_exceeded",
                f"the sandboxes of {owner.name} have used {most:g} sandbox-seconds of a day; kill "
                "sandboxes, wait, or raise sandbox_seconds_per_day of the token",
                retry_after=max(1.0, over * _DAY_SECONDS / most),
            )


def _burst(owner: Token) -> float:
    return max(1.0, owner.quota.requests_per_second)
