"""The entry point that JavaScript calls.

Owns `boot`, which makes the service, and the buffer through which bytes cross.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from wasmsand.engine.javascript.engine import JavaScriptEngine
from wasmsand.engine.javascript.host import TRANSFER_BYTES
from wasmsand.kernel.vfs import FrozenTree
from wasmsand.machine.image import image_at
from wasmsand.web.host import WebHost
from wasmsand.web.service import Service

transfer = bytearray(TRANSFER_BYTES)


@cache
def prepare(image: str) -> FrozenTree:
    """The tree of the image in this directory. A stored memory of this interpreter has it already."""
    return image_at(Path(image))


def boot(host: WebHost, image: str) -> Service:
    """Make the service of a sandbox from an image in this directory."""
    return Service(host, JavaScriptEngine(host, transfer), prepare(image))
