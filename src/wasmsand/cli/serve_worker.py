"""A worker process of `wasmsand serve --workers`. Only the front process starts it.

Its arguments are three inherited sockets (connections, ledger, store) and the pid of the front
process; its settings come on standard input. Rules: the process gives up its rights before it
starts a thread or reads a guest's byte. With installs from the package index it keeps files and
network, which pip needs.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pickle
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wasmsand.http.settings import Settings


def main(arguments: list[str]) -> int:
    """Serve until the front process ends or closes the connection."""
    from wasmsand.cli.logging_format import set_up_logging
    from wasmsand.confinement import ParentGone
    from wasmsand.engine.freed_memory import c_library, have_few_arenas

    link, ledger, store, parent = map(int, arguments)
    settings = pickle.load(sys.stdin.buffer)
    have_few_arenas(c_library())
    set_up_logging(settings.log_format, verbose=settings.verbose)
    try:
        barriers = _confined(settings, parent)
    except ParentGone:
        return 0
    from wasmsand.http.workers.worker import Worker

    worker = Worker(settings, socket.socket(fileno=ledger), socket.socket(fileno=store))
    gc.freeze()  # what exists now is never garbage
    asyncio.run(worker.run(socket.socket(fileno=link), barriers))
    # Threads that wait for sandboxes that hang are not waited for.
    logging.shutdown()
    os._exit(0)


def _confined(settings: Settings, parent: int) -> tuple[str, ...]:
    from wasmsand.cli.confining import confine_server
    from wasmsand.confinement.confining import end_with_parent
    from wasmsand.http.serve import descriptors_of
    from wasmsand.serving.listening import allow_descriptors

    descriptors = descriptors_of(settings)
    allow_descriptors(descriptors)
    if settings.index_installs:
        return end_with_parent(parent).names
    has_network = settings.network is not None or any(token.network for token in settings.tokens)
    return confine_server(
        [],
        parent,
        network=has_network,
        open_files=descriptors,
        file_bytes=settings.max_stored_bytes,
    ).names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
