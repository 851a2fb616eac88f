"""What numpy draws or reads when it is imported; see `_prepared_packages`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _seed(mtrand: Any) -> None:
    """The generator behind `numpy.random.rand` and its like."""
    mtrand._rand.seed()


RENEW = {"numpy.random.mtrand": _seed}
