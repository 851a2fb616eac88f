"""Disk images of trees that are hostile, or that share names with the base image."""

from __future__ import annotations

import io

import pytest

from tests.machine.archives.reading import new_machine
from wasmsand.kernel.limits import MIB
from wasmsand.kernel.vfs import ROOT, ImageBuilder, standard_tree
from wasmsand.machine import Machine, read_disk_image, write_disk_image

pytestmark = pytest.mark.no_userland


def test_a_disk_image_omits_what_no_path_reaches(machine: Machine) -> None:
    """Otherwise it would grow with the square of the depth, and could not be loaded."""
    namespace = machine.kernel.namespace
    node = namespace.resolve(ROOT, namespace.root, b"/tmp")
    for _ in range(3_000):
        node = namespace.mkdir(ROOT, node, b"d" * 200, 0o755)
    machine.files.write("/tmp/kept", b"x")
    stream = io.BytesIO()
    write_disk_image(machine, stream)
    assert len(stream.getvalue()) < MIB
    stream.seek(0)
    twin = new_machine()
    read_disk_image(twin, stream)
    assert twin.files.read("/tmp/kept") == b"x"
    assert len(twin.files.tree("/tmp")) == 4094 // 201 + 1


def test_a_new_link_to_a_file_of_the_image_stays_one_file() -> None:
    builder = ImageBuilder()
    standard_tree(builder)
    builder.add_file(b"/opt/z", b"content")
    image = builder.build()
    machine = Machine(image=image)
    root = machine.kernel.namespace.root
    node = machine.kernel.namespace.resolve(ROOT, root, b"/opt/z")
    machine.kernel.namespace.link(ROOT, node, root, b"/opt/a")
    stream = io.BytesIO()
    write_disk_image(machine, stream)
    stream.seek(0)
    twin = Machine(image=image)
    read_disk_image(twin, stream)
    nodes = [
        twin.kernel.namespace.resolve(ROOT, twin.kernel.namespace.root, path)
        for path in (b"/opt/a", b"/opt/z")
    ]
    assert nodes[0] == nodes[1]
