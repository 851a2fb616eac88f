"""The log of a server, as text or as JSON.

Rules: one line per event. A JSON line has `time` (seconds since 1970), `level`, `logger`,
`message`, `process`, and `error` with the traceback of a bug; fields that an event gives in `extra`
as `fields` are added.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Literal

LogFormat = Literal["text", "json"]
_TEXT = "%(asctime)s %(name)s %(levelname)s: %(message)s"


class JsonLines(logging.Formatter):
    """Formats events as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        event: dict[str, object] = {
            "time": round(record.created, 6),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            event |= {name: value for name, value in fields.items() if name not in event}
        if record.exc_info:
            event["error"] = self.formatException(record.exc_info)
        return json.dumps(event, default=str)


def set_up_logging(form: LogFormat, *, verbose: bool) -> None:
    """Log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter(_TEXT))
    logging.basicConfig(level=logging.INFO if verbose else logging.ERROR, handlers=[handler])
    if not verbose:  # a client may be waiting for a compilation
        logging.getLogger("wasmsand.engine").setLevel(logging.WARNING)
