"""What the handler of a preview 1 function works on.

Owns `WasiContext`; its rules are those of `ProcessContext`. A handler returns 0 or raises.
"""

from __future__ import annotations

from wasmsand.abi.context import ProcessContext
from wasmsand.abi.wasi.descriptors import Descriptor
from wasmsand.abi.wasi.preopens import start_descriptors
from wasmsand.kernel.errno import Errno, KernelError, PathEscapes
from wasmsand.kernel.limits import PATH_MAX
from wasmsand.kernel.vfs import Credentials, Node


class WasiContext(ProcessContext):
    """The caller of a function: one preview 1 program, from its first call to its end."""

    def __init__(self, owner: ProcessContext) -> None:
        """`owner` is the context that both ABIs share."""
        self.kernel = owner.kernel
        self.process = owner.process
        self.thread = owner.thread
        self.memory = owner.memory
        self.descriptors = start_descriptors(self.kernel, self.process)
        self._owner = owner

    def end(self, status: int) -> int:
        return self._owner.end(status)

    def cpu_time_ns(self) -> int:
        return self._owner.cpu_time_ns()

    def directory(self, number: int, right: int) -> Node:
        """The directory at which a path relative to a descriptor starts."""
        descriptor = self.descriptors.get(number)
        descriptor.require(right, Errno.ENOTDIR)
        start = descriptor.start
        assert start is not None  # only directories have rights over paths
        return start

    def descriptor(self, number: int, right: int, inapplicable: Errno) -> Descriptor:
        """A descriptor; fails if it lacks a right."""
        descriptor = self.descriptors.get(number)
        descriptor.require(right, inapplicable)
        return descriptor

    def path(self, address: int, length: int) -> bytes:
        """A path argument, which must be relative."""
        path = self.path_text(address, length)
        if path.startswith(b"/"):
            raise PathEscapes
        return path

    def path_text(self, address: int, length: int) -> bytes:
        """A string that may be the target of a symbolic link. It may contain any bytes but NUL, so
        that a program can open every file whose name it is given."""
        if length >= PATH_MAX:
            raise KernelError(Errno.ENAMETOOLONG)
        text = self.memory.read(address, length)
        if b"\0" in text:
            raise KernelError(Errno.EINVAL)
        return text

    def credentials(self) -> Credentials:
        """The credentials of the caller."""
        return self.process.identity.credentials()
