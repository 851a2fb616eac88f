"""Archives of strangers end with an error, in little time."""

from __future__ import annotations

import tarfile

import pytest

from tests.machine.guests import new_machine
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.machine import import_tar

pytestmark = pytest.mark.no_userland


def test_content_that_is_said_to_be_endless_is_not_skipped_for_ever(engine: WasmtimeEngine) -> None:
    member = tarfile.TarInfo("volume")
    member.type = b"V"  # `tarfile` skips the content of types that it does not know
    member.size = 1 << 62
    archive = member.tobuf(tarfile.GNU_FORMAT) + bytes(2 * tarfile.BLOCKSIZE)
    machine = new_machine(engine)
    with pytest.raises(KernelError) as caught:
        import_tar(machine, "/tmp/in", [archive])
    assert caught.value.errno is Errno.EINVAL
    machine.close()
