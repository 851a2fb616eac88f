"""A fair division of something among tenants: threads, connections, bytes.

Rules: half of the total is divided evenly, and a tenant can always have its part; the
other half goes to whoever comes first, up to the most that one tenant may hold. So no number of
greedy tenants keeps another one out. Used on the event loop only, so there is no lock.
"""

from __future__ import annotations


class Shares:
    """A total, and what each tenant holds of it."""

    def __init__(self, total: int, tenants: int, most: int | None = None) -> None:
        """`tenants`: how many there can be at most. `most`: what one of them may hold."""
        total = max(total, 2 * tenants if tenants > 1 else 1)
        self.guaranteed = total if tenants == 1 else total // (2 * tenants)
        """What a tenant always gets."""
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
        """Whether the tenant itself has too much to take `amount` more."""
        return self.held(tenant) + amount > self.most

    def take(self, tenant: str, amount: int = 1) -> bool:
        """Take `amount` more; False if there is not as much for this tenant."""
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
        """Give back what was taken."""
        held = self._held[tenant]
        self._common_taken -= self._beyond(held) - self._beyond(held - amount)
        self._total_held -= amount
        if held == amount:
            del self._held[tenant]
        else:
            self._held[tenant] = held - amount

    def _beyond(self, held: int) -> int:
        return max(0, held - self.guaranteed)
