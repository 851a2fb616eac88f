"""Traces and metrics for OpenTelemetry, by its own library.

Owns `Telemetry`, which does nothing, and `OpenTelemetry`. Rules: optional: without `--otel` nothing
is imported. A request is one span, a child of the client's span if its headers name one; a span has
the route's pattern, the name of the token and the id of the sandbox, never a command, a path or a
token. Metrics are those of `/metrics`. The exporters are chosen by OpenTelemetry's own variables
(`OTEL_TRACES_EXPORTER`, `OTEL_METRICS_EXPORTER`: otlp, console or none; `OTEL_EXPORTER_OTLP_*`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from wasmsand.http.settings import Settings

_SCOPE: Final = "wasmsand"
_TRACES, _METRICS = "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"


class TelemetryMissing(Exception):
    """OpenTelemetry is not installed, or its variables are not supported."""


class Span:
    """One request."""

    def note(self, name: str, value: str | int | float) -> None:
        """Add an attribute."""

    def answered(self, status: int, code: str | None = None) -> None:
        """The response is known; `code` names the error."""


class Telemetry:
    """No telemetry."""

    @contextmanager
    def request(self, method: str, route: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """The span of a request."""
        yield _NO_SPAN

    def export_metrics(self, text: Callable[[], bytes]) -> None:
        """Export metrics, which `text` returns in Prometheus's format, from time to time."""

    def close(self) -> None:
        """Export the rest."""


_NO_SPAN: Final = Span()
NO_TELEMETRY: Final = Telemetry()


def telemetry_of(settings: Settings) -> Telemetry:
    """What the settings want. Raises `TelemetryMissing`."""
    if not settings.otel:
        return NO_TELEMETRY
    try:
        return OpenTelemetry(settings.version)
    except ImportError as missing:
        raise TelemetryMissing(
            f"--otel: {missing}; install it with `pip install 'wasmsand[otel]'`"
        ) from None


class _OpenSpan(Span):
    def __init__(self, span: Any, failed: Any) -> None:
        self._span = span
        self._failed = failed

    def note(self, name: str, value: str | int | float) -> None:
        self._span.set_attribute(name, value)

    def answered(self, status: int, code: str | None = None) -> None:
        self._span.set_attribute("http.response.status_code", status)
        if code is not None:
            self._span.set_attribute("error.type", code)
        if status >= 500:
            self._span.set_status(self._failed)


class OpenTelemetry(Telemetry):
    """Exports to where OpenTelemetry's variables say."""

    def __init__(self, version: str) -> None:
        """Raises `ImportError`, `TelemetryMissing`."""
        from opentelemetry import trace
        from opentelemetry.propagate import extract
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource.create({"service.name": _SCOPE, "service.version": version})
        self._tracers = TracerProvider(resource=resource)
        spans = _span_exporter()
        if spans is not None:
            self._tracers.add_span_processor(BatchSpanProcessor(spans))
        exporter = _metric_exporter()
        readers = [] if exporter is None else [PeriodicExportingMetricReader(exporter)]
        self._meters = MeterProvider(metric_readers=readers, resource=resource)
        self._tracer = self._tracers.get_tracer(_SCOPE, version)
        self._meter = self._meters.get_meter(_SCOPE, version)
        self._extract = extract
        self._kind = trace.SpanKind.SERVER
        self._failed = trace.Status(trace.StatusCode.ERROR)

    @contextmanager
    def request(self, method: str, route: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """See `Telemetry`."""
        with self._tracer.start_as_current_span(
            f"{method} {route}",
            context=self._extract(headers),
            kind=self._kind,
            attributes={"http.request.method": method, "http.route": route},
        ) as span:
            yield _OpenSpan(span, self._failed)

    def export_metrics(self, text: Callable[[], bytes]) -> None:
        """See `Telemetry`."""
        from opentelemetry.metrics import Observation

        def samples(name: str) -> Callable[[Any], Iterator[Any]]:
            def observe(_options: Any) -> Iterator[Any]:
                for family in _families(text()):
                    for sample in family.samples:
                        if sample.name == name:
                            yield Observation(sample.value, dict(sample.labels))

            return observe

        for family in _families(text()):
            description = family.documentation
            if family.type == "gauge":
                self._meter.create_observable_gauge(
                    family.name, [samples(family.name)], description=description
                )
            elif family.type == "counter":
                name = f"{family.name}_total"
                self._meter.create_observable_counter(
                    family.name, [samples(name)], description=description
                )
            elif family.type == "histogram":
                for part in ("sum", "count"):
                    name = f"{family.name}_{part}"
                    self._meter.create_observable_counter(
                        name, [samples(name)], description=description
                    )

    def close(self) -> None:
        """See `Telemetry`."""
        self._tracers.shutdown()
        self._meters.shutdown()


def _families(text: bytes) -> Iterator[Any]:
    return iter(text_string_to_metric_families(text.decode()))


def _chosen(variable: str) -> str:
    chosen = os.environ.get(variable, "otlp").strip().lower()
    if chosen not in ("otlp", "console", "none"):
        raise TelemetryMissing(f"{variable} must be otlp, console or none, not {chosen!r}")
    return chosen


def _span_exporter() -> Any:
    match _chosen(_TRACES):
        case "console":
            from opentelemetry.sdk.trace.export import ConsoleSpanExporter

            return ConsoleSpanExporter()
        case "otlp":
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            return OTLPSpanExporter()
    return None


def _metric_exporter() -> Any:
    match _chosen(_METRICS):
        case "console":
            from opentelemetry.sdk.metrics.export import ConsoleMetricExporter

            return ConsoleMetricExporter()
        case "otlp":
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

            return OTLPMetricExporter()
    return None
