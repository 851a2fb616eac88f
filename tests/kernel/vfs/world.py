"""What the file system tests share: a small namespace, a clock that tests move, shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wasmsand.kernel import flags as numbers
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.vfs import ROOT, Credentials, FrozenTree, ImageBuilder, Namespace, Node, TreeFs

USER = Credentials(1000, 1000, frozenset({2000}))
OTHER = Credentials(1001, 1001)


class Clock:
    """A clock in nanoseconds that only a test moves."""

    def __init__(self) -> None:
        self.ns = 1_000

    def __call__(self) -> int:
        return self.ns

    def tick(self) -> int:
        self.ns += 1_000
        return self.ns


class World:
    """A namespace over one tree, driven by absolute paths."""

    def __init__(
        self,
        base: FrozenTree | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
        tree: TreeFs | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.tree = tree or TreeFs(base or ImageBuilder().build(), limits, self.clock)
        self.ns = Namespace(self.tree)
        self.root = self.ns.root

    def fork(self) -> World:
        return World(self.tree.freeze(), self.tree.limits, self.clock)

    def find(self, path: bytes, cred: Credentials = ROOT, *, follow: bool = True) -> Node:
        return self.ns.resolve(cred, self.root, path, follow=follow)

    def open(
        self, path: bytes, flags: int, mode: int = 0o644, cred: Credentials = ROOT, umask: int = 0
    ) -> Node:
        return self.ns.open_node(cred, self.root, path, flags, mode, umask)

    def write(self, path: bytes, data: bytes, mode: int = 0o644) -> Node:
        node = self.open(path, numbers.O_WRONLY | numbers.O_CREAT | numbers.O_TRUNC, mode)
        assert self.ns.write(ROOT, node, 0, data) == len(data)
        return node

    def read(self, path: bytes) -> bytes:
        node = self.find(path)
        return self.ns.read(node, 0, self.ns.size(node))

    def mkdir(self, path: bytes, mode: int = 0o755, cred: Credentials = ROOT) -> Node:
        return self.ns.mkdir(cred, self.root, path, mode)

    def symlink(self, target: bytes, path: bytes) -> Node:
        return self.ns.symlink(ROOT, target, self.root, path)

    def link(self, path: bytes, new_path: bytes) -> None:
        self.ns.link(ROOT, self.find(path, follow=False), self.root, new_path)

    def unlink(self, path: bytes, cred: Credentials = ROOT) -> None:
        self.ns.unlink(cred, self.root, path)

    def rmdir(self, path: bytes, cred: Credentials = ROOT) -> None:
        self.ns.rmdir(cred, self.root, path)

    def rename(self, path: bytes, new: bytes, flags: int = 0, cred: Credentials = ROOT) -> None:
        self.ns.rename(cred, self.root, path, self.root, new, flags)

    def names(self, path: bytes) -> list[bytes]:
        return [entry.name for entry in self.ns.readdir(self.find(path), 0, 100_000)][2:]

    def used(self) -> tuple[int, int]:
        """The charged (bytes, inodes)."""
        return self.tree.space.used_bytes, self.tree.space.used_inodes


def image(fill: Callable[[ImageBuilder], None]) -> FrozenTree:
    builder = ImageBuilder()
    fill(builder)
    return builder.build()


@contextmanager
def fails(errno: Errno) -> Iterator[None]:
    """The block fails with exactly this errno."""
    try:
        yield
    except KernelError as error:
        if error.errno is not errno:
            raise AssertionError(f"failed with {error.errno.name}, not {errno.name}") from error
    else:
        raise AssertionError(f"did not fail with {errno.name}")
