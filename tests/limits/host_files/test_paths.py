"""Long paths and chains of links: bounded, and in linear time."""

from __future__ import annotations

import pytest

from tests.limits.host_files.turns import LONGEST_HOLD, Host, PythonPeak
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import MIB

pytestmark = pytest.mark.no_userland


def test_a_listing_of_long_paths_is_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wasmsand.machine.files.HOST_LISTING_BYTES", 1 * MIB)
    path = "/tmp"
    for _ in range(10):
        path += "/" + "n" * 200
        host.files.mkdir(path)
    host.fill(path, 1_000)
    with PythonPeak() as peak, pytest.raises(KernelError, match=r"EFBIG: .*list its directories"):
        host.files.tree("/tmp")
    assert peak.bytes < 8 * MIB
    with pytest.raises(KernelError, match="EFBIG"):
        host.files.list(path)
    host.files.symlink(path, "/tmp/short")
    assert len(host.files.list("/tmp/short")) == 1_000


def test_many_directories_that_are_missing_are_made_in_linear_time(host: Host) -> None:
    path = "/tmp" + "/d" * 2_000
    host.files.mkdir(path)
    host.files.write(path + "/f", b"x")
    assert host.files.read(path + "/f") == b"x"
    assert host.turns.longest < LONGEST_HOLD


@pytest.mark.parametrize("size", [0, 3])
def test_forty_links_in_a_path_are_followed_and_forty_one_refused(host: Host, size: int) -> None:
    host.files.mkdir("/tmp/" + "/".join(["d" * 60] * 60))
    host.files.symlink("/".join(["d" * 60] * 60), "/tmp/l0")
    for number in range(1, 40):
        host.files.symlink(f"/tmp/l{number - 1}", f"/tmp/l{number}")
    host.files.write("/tmp/l39/f", bytes(size))
    assert host.files.read("/tmp/l0/f") == bytes(size)
    with pytest.raises(KernelError, match="ELOOP"):
        host.files.symlink("/tmp/l39", "/tmp/l40")
        host.files.write("/tmp/l40/f", b"x")
