"""A disk image carries the files of one sandbox to another."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable

import pytest

from wasmsand.kernel.limits import Limits
from wasmsand.machine import (
    CommandRequest,
    DiskImageRejected,
    Machine,
    MachineOptions,
    read_disk_image,
    write_disk_image,
)

ENVIRON = {"PATH": "/usr/bin:/bin"}


def saved(machine: Machine) -> bytes:
    stream = io.BytesIO()
    write_disk_image(machine, stream)
    return stream.getvalue()


def loaded(image: bytes, limits: Limits | None = None) -> Machine:
    machine = Machine(MachineOptions(limits=limits or Limits()))
    read_disk_image(machine, io.BytesIO(image))
    return machine


def shell(machine: Machine, script: str) -> str:
    completed = machine.run(CommandRequest(("/bin/bash", "-c", script), ENVIRON, "/tmp"))
    assert (completed.stderr, completed.exit_code) == (b"", 0)
    return completed.stdout.decode("utf-8", "surrogateescape")


def tree(machine: Machine) -> dict[str, object]:
    """Every file of the sandbox except /proc, with everything that a user can see."""
    found: dict[str, object] = {}
    for entry in machine.files.tree("/"):
        if entry.path.startswith("/proc"):
            continue
        content = None
        if entry.type == "file" and entry.size < 1 << 20:
            content = machine.files.read(entry.path)
        elif entry.type == "symlink":
            content = machine.files.read_link(entry.path).encode()
        found[entry.path] = (entry.type, entry.size, entry.mode, entry.mtime_ns, content)
    return found


def by_commands(machine: Machine) -> None:
    shell(
        machine,
        r"""mkdir -p a/b "a/$(printf 'n%.0s' {1..200})"
        echo one > a/b/one; chmod 4751 a/b/one; ln a/b/one a/two; ln -s ../nowhere a/link
        mkfifo -m 600 a/fifo; echo x > a/$'\xff\xfe'; printf '\377\0' > a/binary; : > a/empty
        truncate -s 1T a/sparse; echo end >> a/sparse
        mkdir -m 1777 a/sticky; touch -d '1999-12-31 23:59:59.123456789 UTC' a/b/one a/b
        seq 300000 > a/large; cat /usr/bin/* > /dev/null""",
    )


def by_the_host(machine: Machine) -> None:
    files = machine.files
    files.remove("/etc/passwd")
    files.remove("/usr/share", recursive=True)
    files.write("/usr/share", b"now a file")
    files.remove("/etc/hostname")
    files.mkdir("/etc/hostname/now/a/directory")
    files.rename("/usr/lib/python3.14", "/home/lib")
    files.write("/etc/group", b"changed\n")
    files.chmod("/etc/hosts", 0o600)
    files.write("/bin/ls", b"#!/bin/bash\necho not ls\n")


def nothing(_: Machine) -> None:
    pass


@pytest.mark.parametrize("change", [nothing, by_commands, by_the_host])
def test_files_are_the_same_after_saving_and_loading(change: Callable[[Machine], None]) -> None:
    machine = Machine()
    change(machine)
    twin = loaded(saved(machine))
    assert tree(twin) == tree(machine)
    assert tree(loaded(saved(twin))) == tree(machine)


def test_loaded_files_are_charged_as_before() -> None:
    machine = Machine()
    by_commands(machine)
    usage, twins = machine.kernel.root.space, loaded(saved(machine)).kernel.root.space
    assert (twins.used_blocks, twins.used_inodes) == (usage.used_blocks, usage.used_inodes)


def test_links_and_holes_stay_links_and_holes() -> None:
    machine = Machine()
    by_commands(machine)
    image = saved(machine)
    assert len(image) < 4_000_000
    twin = loaded(image)
    assert shell(twin, "stat -c %h a/two; tail -c 4 a/sparse; stat -c %U a/two") == "2\nend\nuser\n"


def test_unchanged_files_are_not_saved() -> None:
    machine = Machine()
    shell(machine, "cat /etc/passwd /bin/bash > /dev/null; echo x > x; rm x")
    with tarfile.open(fileobj=io.BytesIO(saved(machine))) as archive:
        assert archive.getnames() == [".", "tmp", "."]


def test_a_disk_that_does_not_fit_is_refused() -> None:
    machine = Machine()
    machine.files.write("/tmp/big", bytes(2_000_000))
    with pytest.raises(DiskImageRejected, match="ENOSPC: file system full"):
        loaded(saved(machine), Limits(fs_limit_bytes=1_000_000))


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    "info",
    [
        member("../up"),
        member("a/../../up"),
        member("/absolute"),
        member("a//b"),
        member("a/" * 3000 + "a"),
        member("no/such/directory"),
        member("tmp/device", tarfile.CHRTYPE),
        member("tmp/link", tarfile.LNKTYPE, "no/such/file"),
        member("tmp/link", tarfile.LNKTYPE, "../../etc/passwd"),
        member("tmp/link", tarfile.SYMTYPE, "x" * 5000),
    ],
    ids=lambda info: info.name[:20],
)
def test_an_archive_with_a_strange_member_is_refused(info: tarfile.TarInfo) -> None:
    stream = io.BytesIO()
    with tarfile.open(
        fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"WASMSAND.disk": "1"}
    ) as archive:
        archive.addfile(info)
    with pytest.raises(DiskImageRejected):
        loaded(stream.getvalue())


def test_another_archive_and_a_broken_one_are_refused() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(member("a"))
    with pytest.raises(DiskImageRejected, match="not a disk image of this version"):
        loaded(stream.getvalue())
    machine = Machine()
    by_commands(machine)
    image = saved(machine)
    for length in (0, 100, 700, 3000, 100_000):
        with pytest.raises(DiskImageRejected):
            loaded(image[:length])
