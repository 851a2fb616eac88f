"""Host operations that do not fit fail whole, and copies are charged in full."""

from __future__ import annotations

import pytest

from tests.limits.host_files.turns import Host
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import MIB, Limits
from wasmsand.kernel.vfs import ROOT
from wasmsand.kernel.vfs.chunks import CHUNK_SIZE

pytestmark = pytest.mark.no_userland


@pytest.mark.parametrize("links", [1, 2])
def test_a_write_that_does_not_fit_leaves_what_was_there(links: int) -> None:
    host = Host(Limits(fs_limit_bytes=10 * MIB))
    host.files.write("/tmp/f", b"old" * MIB)
    if links == 2:
        host.link("/tmp/f", "/tmp/g")
    with pytest.raises(KernelError, match=r"^ENOSPC: .*fs_limit_bytes"):
        host.files.write("/tmp/f", bytes(11 * MIB))
    for size in (MIB // 2, 9 * MIB):
        with pytest.raises(KernelError, match=r"^ENOSPC: .*fs_limit_bytes"):
            host.files.append("/tmp/f", bytes(size) * (1 if size > MIB else 20))
    assert host.files.read("/tmp/f") == b"old" * MIB
    host.files.write("/tmp/h", b"")
    with pytest.raises(KernelError, match=r"^ENOSPC: "):
        for number in range(5):
            host.files.copy("/tmp/f", f"/tmp/copy{number}")
    host.files.write("/tmp/small", b"kept")
    with pytest.raises(KernelError, match=r"^ENOSPC: "):
        host.files.copy("/tmp/f", "/tmp/small")
    assert host.files.read("/tmp/small") == b"kept"
    used = host.machine.kernel.root.space.used_blocks
    for entry in host.files.list("/tmp"):
        host.files.remove(f"/tmp/{entry.name}", recursive=True)
    assert host.machine.kernel.root.space.used_blocks < used
    assert host.machine.kernel.root.space.used_blocks == 0


def test_a_copy_is_charged_as_if_it_had_bytes_of_its_own() -> None:
    host = Host(Limits(fs_limit_bytes=10 * MIB))
    host.files.write("/tmp/f", bytes(4 * MIB))
    host.files.copy("/tmp/f", "/tmp/g")
    with pytest.raises(KernelError, match=r"^ENOSPC: "):
        host.files.copy("/tmp/f", "/tmp/h")
    node = host.node("/tmp/g")
    for offset in range(0, 4 * MIB, CHUNK_SIZE):
        assert host.namespace.write(ROOT, node, offset, b"y") == 1
