"""What the types of all JSON requests and responses are made of. Rules: see `messages`."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Positive = Annotated[int, Meta(ge=1, le=2**53)]
Milliseconds = Annotated[float, Meta(gt=0, le=10**12)]
Seconds = Annotated[float, Meta(gt=0, le=10**9)]
Descriptor = Annotated[int, Meta(ge=0, le=1023)]
Path = Annotated[str, Meta(description="absolute, or relative to the sandbox's cwd")]


class RequestMessage(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A JSON body or query parameters from a client."""


class ResponseMessage(msgspec.Struct, kw_only=True):
    """A JSON response."""
