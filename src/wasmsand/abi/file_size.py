"""RLIMIT_FSIZE.

Owns what happens to a write or a resize that would make a file longer than the limit: SIGXFSZ and
EFBIG, or a shorter write.
"""

from __future__ import annotations

from wasmsand.abi.context import ProcessContext
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.delivery import SI_KERNEL, post_to_thread
from wasmsand.kernel.process.rlimits import INFINITY
from wasmsand.kernel.process.signals import Signal, SignalInfo
from wasmsand.kernel.vfs import Node


def within_file_size(context: ProcessContext, data: bytes, start: int) -> bytes:
    """The part of `data` that may be written at `start`."""
    limit = context.process.rlimits.file_size
    if limit == INFINITY or start + len(data) <= limit:
        return data
    if start >= limit and data:
        raise _too_large(context)
    return data[: limit - start]


def require_file_size(context: ProcessContext, node: Node, size: int) -> None:
    """A file may not grow past the limit; a longer one may shrink."""
    if size > context.process.rlimits.file_size and size > context.kernel.namespace.size(node):
        raise _too_large(context)


def _too_large(context: ProcessContext) -> KernelError:
    post_to_thread(context.kernel, context.thread, SignalInfo(Signal.SIGXFSZ, SI_KERNEL))
    return KernelError(Errno.EFBIG, "RLIMIT_FSIZE")
