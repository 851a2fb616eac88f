"""The entry point that JavaScript calls.

Owns `boot`, which makes the service, and the buffer through which bytes cross. Rules: what exists
before the service stays for good, so the garbage collector never looks at it again.
"""

from __future__ import annotations

import gc
from functools import cache
from pathlib import Path

from wasmsand.engine.javascript.engine import JavaScriptEngine
from wasmsand.engine.javascript.host import TRANSFER_BYTES
from wasmsand.kernel.vfs import FrozenTree
from wasmsand.machine.image import image_at
from wasmsand.web.host import WebHost
from wasmsand.web.methods_commands import COMMAND_METHODS
from wasmsand.web.methods_files import FILE_METHODS
from wasmsand.web.methods_mounts import MOUNT_METHODS
from wasmsand.web.methods_network import NETWORK_METHODS
from wasmsand.web.methods_sessions import SESSION_METHODS
from wasmsand.web.methods_state import STATE_METHODS
from wasmsand.web.service import Service

transfer = bytearray(TRANSFER_BYTES)


@cache
def prepare(image: str) -> FrozenTree:
    """The tree of the image in this directory. A stored memory of Python has it already."""
    return image_at(Path(image))


def boot(host: WebHost, image: str) -> Service:
    """Make the service of a sandbox from an image in this directory."""
    methods = (
        COMMAND_METHODS
        | FILE_METHODS
        | MOUNT_METHODS
        | NETWORK_METHODS
        | SESSION_METHODS
        | STATE_METHODS
    )
    tree = prepare(image)
    gc.freeze()
    return Service(host, JavaScriptEngine(host, transfer), tree, image, methods)
