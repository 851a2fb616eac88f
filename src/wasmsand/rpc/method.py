"""`Method`: one row of the table of methods.

Rules: a method's parameters are checked by name from its row and by type in its handler, before
anything is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wasmsand.rpc.params import Params
from wasmsand.rpc.session import RpcSession

Result = dict[str, object]
Handler = Callable[[RpcSession, Params], Result]

OK: Final[Result] = {"ok": True}


@dataclass(frozen=True, slots=True)
class Method:
    """What can be called, and how."""

    name: str
    handler: Handler
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    waits: bool = False
    """It may take long: it is done beside other requests, and answered when it is done."""
