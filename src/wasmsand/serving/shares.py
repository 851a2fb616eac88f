"""Divides a resource fairly among tenants: threads, connections, bytes.

Rules: half of the total is divided evenly, and each tenant can always have its part. The other
half is first come, first served, up to the maximum of one tenant. So greedy tenants cannot lock
another one out. Used on the event loop only, so there is no lock.
"""

from __future__ import annotations


class Shares:
    """A resource, and how much of it each tenant holds."""

    def __init__(self, total: int, tenants: int, most: int | None = None) -> None:
        """`tenants` is the largest number of tenants, `most` the maximum of one tenant."""
        total = max(total, 2 * tenants if tenants > 1 else 1)
        self.guaranteed = total if tenants == 1 else total // (2 * tenants)
        """What a tenant can always have."""
        self._common = total - tenants * self.guaranteed
        limit = self.guaranteed + self._common
        self.most = limit if most is None else max(1, min(most, limit))
        self._held: dict[str, int] = {}
        self._common_taken = 0
        self._total_held = 0

    @property
    def total_held(self) -> int:
        """What all tenants hold together."""
        return self._total_held

    def held(self, tenant: str) -> int:
        """What a tenant holds."""
        return self._held.get(tenant, 0)

    def is_at_most(self, tenant: str, amount: int = 1) -> bool:
        """Whether the tenant's own maximum prevents it from taking `amount` more."""
        return self.held(tenant) + amount > self.most

    def take(self, tenant: str, amount: int = 1) -> bool:
        """Take `amount` more; False if the tenant cannot have it."""
        held = self.held(tenant)
        if held + amount > self.most:
            return False
        common = self._beyond(held + amount) - self._beyond(held)
        if self._common_taken + common > self._common:
            return False
        self._common_taken += common
        self._held[tenant] = held + amount
        self._total_held += amount
        return True

    def give(self, tenant: str, amount: int = 1) -> None:
        """Give back `amount`."""
        held = self._held[tenant]
        self._common_taken -= self._beyond(held) - self._beyond(held - amount)
        self._total_held -= amount
        if held == amount:
            del self._held[tenant]
        else:
            self._held[tenant] = held - amount

    def _beyond(self, held: int) -> int:
        return max(0, held - self.guaranteed)
