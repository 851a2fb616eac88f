"""Programs that run as their owner (expectations from Linux), and the names of linked ones."""

from __future__ import annotations

import pytest

from tests.kernel.system import System
from wasmsand.kernel.flags import MS_NOSUID
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.program import become, find_program
from wasmsand.kernel.vfs import ROOT, FrozenTree, ImageBuilder, TreeFs

WASM = b"\0asm\1\0\0\0"


def execute(system: System, process: Process, path: bytes) -> None:
    become(system.kernel, process, find_program(system.kernel, process, process.cwd, path, (), ()))


def make(system: System, path: bytes, mode: int, uid: int = 0, gid: int = 0) -> None:
    system.make_file(path, WASM, 0o755)
    namespace = system.kernel.namespace
    node = namespace.resolve(ROOT, namespace.root, path)
    namespace.chown(ROOT, node, uid, gid)
    namespace.chmod(ROOT, node, mode)


def ids(process: Process) -> tuple[int, ...]:
    who = process.identity
    return (who.uid, who.euid, who.suid, who.gid, who.egid, who.sgid)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (0o755, (1000, 1000, 1000, 1000, 1000, 1000)),
        (0o4755, (1000, 7, 7, 1000, 1000, 1000)),
        (0o2755, (1000, 1000, 1000, 1000, 8, 8)),
        (0o6755, (1000, 7, 7, 1000, 8, 8)),
        (0o2745, (1000, 1000, 1000, 1000, 1000, 1000)),  # without the group's x it is no set-id bit
    ],
)
def test_set_id_bits_change_the_effective_and_saved_ids(
    system: System, process: Process, mode: int, expected: tuple[int, ...]
) -> None:
    make(system, b"/tmp/tool", mode, 7, 8)
    execute(system, process, b"/tmp/tool")
    assert ids(process) == expected
    assert process.dumpable == (expected[1] == expected[4] == 1000)


def test_the_next_program_keeps_the_effective_id_and_saves_it(
    system: System, process: Process
) -> None:
    make(system, b"/tmp/tool", 0o4755)
    make(system, b"/tmp/next", 0o755)
    execute(system, process, b"/tmp/tool")
    process.identity = process.identity.with_uids(-1, 1000, -1)
    execute(system, process, b"/tmp/next")
    assert ids(process)[:3] == (1000, 1000, 1000)


def test_the_bits_of_a_script_have_no_effect(system: System, process: Process) -> None:
    make(system, b"/tmp/tool", 0o755)
    system.make_file(b"/tmp/script", b"#!/tmp/tool\n", 0o755)
    namespace = system.kernel.namespace
    node = namespace.resolve(ROOT, namespace.root, b"/tmp/script")
    namespace.chown(ROOT, node, 0, 0)
    namespace.chmod(ROOT, node, 0o4755)
    execute(system, process, b"/tmp/script")
    assert process.identity.euid == 1000


def _tree_with_set_id_program() -> FrozenTree:
    builder = ImageBuilder()
    builder.add_file(b"/tool", WASM, 0o4755)
    return builder.build()


@pytest.mark.parametrize(("flags", "euid"), [(0, 0), (MS_NOSUID, 1000)])
def test_a_mount_may_ignore_the_bits(
    system: System, process: Process, flags: int, euid: int
) -> None:
    kernel = system.kernel
    place = kernel.namespace.resolve(ROOT, kernel.namespace.root, b"/mnt")
    fs = TreeFs(_tree_with_set_id_program(), kernel.limits, kernel.clock.realtime)
    kernel.namespace.mount(place, fs, flags)
    execute(system, process, b"/mnt/tool")
    assert process.identity.euid == euid


def test_a_program_with_several_names_has_the_one_that_was_used(
    system: System, process: Process
) -> None:
    namespace = system.kernel.namespace
    make(system, b"/tmp/tool", 0o755)
    node = namespace.resolve(ROOT, namespace.root, b"/tmp/tool")
    for name in (b"/tmp/first", b"/tmp/second"):
        namespace.link(ROOT, node, namespace.root, name)
    namespace.symlink(ROOT, b"second", namespace.root, b"/tmp/soft")
    namespace.symlink(ROOT, b"/tmp", namespace.root, b"/tmp/here")
    used = {
        b"/tmp/tool": b"/tmp/tool",
        b"/tmp/first": b"/tmp/first",
        b"/tmp/second": b"/tmp/second",
        b"/tmp/soft": b"/tmp/second",
        b"/tmp/here/../tmp/first": b"/tmp/first",
    }
    for path, expected in used.items():
        execute(system, process, path)
        assert process.executable == expected
    system.kernel.current = process.first_thread
    execute(system, process, b"/proc/self/exe")
    assert process.executable == b"/tmp/first"
