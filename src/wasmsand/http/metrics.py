"""Metrics for Prometheus: `GET /metrics`.

Owns the names of the metrics. Rules: a label has few values (a route's pattern, never a
path or an id; a token's name, never its text); gauges are computed when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from wasmsand.sdk.network import NetworkEvent

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        # Otherwise each counter has a second series, which nobody uses.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self.requests = self.counter(
            "wasmsand_http_requests", "Answered requests.", "method", "route", "status"
        )
        self.request_seconds = Histogram(
            "wasmsand_http_request_seconds",
            "Time from a request's header to its response.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.token_requests = self.counter(
            "wasmsand_token_requests", "Requests of each token, including refused ones.", "token"
        )
        self.refused = self.counter(
            "wasmsand_http_refused",
            "Requests refused by authentication, a quota or the server's limits.",
            "code",
        )
        self.sandboxes_created = self.counter(
            "wasmsand_sandboxes_created", "Created sandboxes.", "token"
        )
        self.sandboxes_ended = self.counter(
            "wasmsand_sandboxes_ended",
            "Ended sandboxes: killed by a client, expired, or killed at shutdown.",
            "cause",
        )
        self.commands = self.counter("wasmsand_commands", "Ended commands.", "outcome")
        self.command_seconds = Histogram(
            "wasmsand_command_seconds",
            "Run time of commands.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.token_commands = self.counter(
            "wasmsand_token_commands", "Ended commands of each token.", "token"
        )
        self.token_command_seconds = self.counter(
            "wasmsand_token_command_seconds", "Run time of the commands of each token.", "token"
        )
        self.resume_seconds = Histogram(
            "wasmsand_resume_seconds",
            "Time to resume a paused sandbox.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.network_events = self.counter(
            "wasmsand_network_events",
            "Look-ups, connections and requests of sandboxes, allowed or refused.",
            "token",
            "kind",
            "outcome",
        )
        self.network_bytes = self.counter(
            "wasmsand_network_bytes",
            "Bytes that sandboxes have sent and received.",
            "token",
            "direction",
        )

    def counter(self, name: str, description: str, *labels: str) -> Counter:
        """A new counter."""
        return Counter(name, description, labels, registry=self._registry)

    def gauge(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a gauge; `value` returns its current value."""
        Gauge(name, description, registry=self._registry).set_function(value)

    def count_command(self, token: str, exit_code: int, timed_out: bool, seconds: float) -> None:
        """Count a command that has ended."""
        self.token_commands.labels(token).inc()
        self.token_command_seconds.labels(token).inc(seconds)
        outcome = "timeout" if timed_out else "failure" if exit_code else "success"
        self.commands.labels(outcome).inc()
        self.command_seconds.observe(seconds)

    def count_network(self, token: str, event: NetworkEvent) -> None:
        """Count an event of a sandbox's network. Called on any thread."""
        outcome = "allowed" if event.allowed else "refused"
        self.network_events.labels(token, event.kind, outcome).inc()
        if event.kind == "connection":
            self.network_bytes.labels(token, "sent").inc(event.sent)
            self.network_bytes.labels(token, "received").inc(event.received)

    def text(self) -> bytes:
        """All metrics, in Prometheus's text format."""
        return generate_latest(self._registry)

    def own_text(self, token: str, held: Mapping[str, float]) -> bytes:
        """The metrics of one token: its own counters, and `held`, what it uses now."""
        lines = []
        for name in (
            "wasmsand_sandboxes_created_total",
            "wasmsand_token_requests_total",
            "wasmsand_token_commands_total",
            "wasmsand_token_command_seconds_total",
        ):
            value = self._registry.get_sample_value(name, {"token": token}) or 0.0
            lines += [f"# TYPE {name} counter", f"{name} {value}"]
        for direction in ("sent", "received"):
            name = "wasmsand_network_bytes_total"
            labels = {"token": token, "direction": direction}
            value = self._registry.get_sample_value(name, labels) or 0.0
            lines += [f'{name}{{direction="{direction}"}} {value}']
        for name, value in held.items():
            lines += [f"# TYPE {name} gauge", f"{name} {float(value)}"]
        return ("\n".join(lines) + "\n").encode("ascii")
