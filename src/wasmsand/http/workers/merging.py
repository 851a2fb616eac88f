"""One answer made of the answers of all workers: lists and metrics.

Rules: what workers send is checked before it is merged. Lists are sorted by their age, as those of
one process are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from prometheus_client.utils import floatToGoString

from wasmsand.http.workers.slot import WorkerLost
from wasmsand.wire import strict_json

_NOT_SUMMED: Final = {"process_start_time_seconds": min, "process_max_fds": min}


def merged_metrics(texts: Iterable[bytes]) -> bytes:
    """The sum of metrics in Prometheus's text format."""
    comments: dict[str, dict[str, None]] = {}
    samples: dict[str, dict[str, float]] = {}
    for text in texts:
        family = ""
        for line in text.decode("utf-8", "replace").splitlines():
            if line.startswith("# "):
                family = line.split(" ", 3)[2]
                comments.setdefault(family, {})[line] = None
            elif line:
                name, _, value = line.rpartition(" ")
                found = samples.setdefault(family, {})
                try:
                    number = float(value)
                except ValueError:
                    raise WorkerLost from None
                combine = _NOT_SUMMED.get(name)
                if combine is not None and name in found:
                    found[name] = combine(found[name], number)
                else:
                    found[name] = found.get(name, 0.0) + number
    lines: list[str] = []
    for family in {**comments, **samples}:
        lines += comments.get(family, {})
        lines += [f"{name} {_number(value)}" for name, value in samples.get(family, {}).items()]
    return ("\n".join(lines) + "\n").encode()


def _number(value: float) -> str:
    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return text


def items_of(body: bytes, name: str) -> list[dict[str, Any]]:
    """The list called `name` in a worker's response. Raises `WorkerLost`."""
    try:
        decoded: Any = strict_json.decode(body)
        items = list(decoded[name])
        if not all(isinstance(item["id"], str) and item["created_at"] >= 0 for item in items):
            raise WorkerLost
        return items
    except (strict_json.BadJson, KeyError, TypeError):
        raise WorkerLost from None


def oldest_first(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sandboxes or snapshots by age."""
    return sorted(items, key=lambda item: (item["created_at"], item["id"]))


def after(items: list[dict[str, Any]], identity: str | None, limit: int) -> list[dict[str, Any]]:
    """A page: at most `limit` items, after the one with this id."""
    if identity is not None:
        ids = [item["id"] for item in items]
        items = items[ids.index(identity) + 1 :] if identity in ids else []
    return items[:limit]
