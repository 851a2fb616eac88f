"""Files of the image whose content the host fetches when a guest opens them."""

from __future__ import annotations

import pytest

from tests.kernel.system import System
from wasmsand.kernel.flags import O_CREAT, O_EXCL, O_PATH, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.vfs import ImageBuilder, TreeFs, standard_tree
from wasmsand.kernel.vfs.image_data import ImageData
from wasmsand.kernel.wait import OutsideWait, WaitQueue


class Host:
    """Has no content at first, and is asked for it."""

    def __init__(self) -> None:
        self.asked: list[ImageData] = []
        self.has_come = False

    def want(self, data: ImageData) -> None:
        self.asked.append(data)
        if not self.has_come:
            raise OutsideWait(WaitQueue())


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def system(host: Host) -> System:
    made = System()
    builder = ImageBuilder()
    standard_tree(builder)
    builder.add_file(b"/tmp/later", lambda: b"content", 0o666, size=7)
    builder.add_file(b"/tmp/now", b"present", 0o666)
    root = TreeFs(builder.build(), made.limits, made.clock.realtime)
    made.kernel = Kernel(root, made.limits, clock=made.clock)
    made.kernel.content_wanted = host.want
    return made


@pytest.fixture
def process(system: System) -> Process:
    return system.command()


@pytest.mark.parametrize("flags", [O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_CREAT])
def test_opening_waits_until_the_content_is_there(
    system: System, process: Process, host: Host, flags: int
) -> None:
    with pytest.raises(OutsideWait):
        system.open(process, b"/tmp/later", flags)
    host.has_come = True
    system.open(process, b"/tmp/later", flags)
    assert system.open(process, b"/tmp/later", O_RDONLY).read(99) == b"content"
    asked = len(host.asked)
    system.open(process, b"/tmp/later", flags)
    assert len(host.asked) == asked  # it is in memory now


def test_content_that_nobody_will_read_is_not_fetched(
    system: System, process: Process, host: Host
) -> None:
    system.open(process, b"/tmp/now", O_RDONLY)
    system.open(process, b"/tmp/later", O_PATH)
    system.open(process, b"/tmp/later", O_WRONLY | O_TRUNC)
    system.open(process, b"/tmp/new", O_WRONLY | O_CREAT | O_EXCL)
    assert host.asked == []
