"""`Method`: one row of the table of methods.

Rules: the row lists the names of the parameters, and the handler checks their types, before
the method has any effect.
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
    """A method and its parameters."""

    name: str
    handler: Handler
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    waits: bool = False
    """The method may take long: it runs on its own thread, beside other requests."""
