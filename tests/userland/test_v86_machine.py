"""The parts of `wasmsand build v86` that need no network and no boot."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from userland.builder import cli
from userland.builder.errors import BuildError
from userland.v86 import build, initrd, pinned, root_disk


def test_every_part_is_pinned_by_version_and_hash_and_has_a_licence() -> None:
    table = pinned.read_table()
    assert len(table.debian) > 40
    names = [package.name for package in table.debian]
    assert len(names) == len(set(names))
    for package in table.debian:
        assert re.fullmatch("[0-9a-f]{64}", package.source.sha256), package.name
        version = package.version.partition(":")[2] or package.version
        assert package.source.file.startswith(f"{package.name}_{version}_"), package.name
        assert package.licence
    for part in table.npm:
        assert re.fullmatch(r"[A-Za-z0-9+/]{86}==", part.sha512), part.name
        assert part.licence


def test_the_first_file_system_is_an_archive_that_cpio_reads(tmp_path: Path) -> None:
    program = tmp_path / "busybox"
    program.write_bytes(b"program")
    module = tmp_path / "some.ko"
    module.write_bytes(b"module")
    archive = initrd.make_initrd(program, [module])
    assert len(archive) % 4 == 0
    names = re.findall(rb"070701[0-9A-F]{104}([^\0]+)\0", archive)
    assert names == [
        *(b"dev", b"dev/console", b"bin", b"bin/busybox", b"bin/sh", b"init"),
        *(b"modules", b"modules/order", b"modules/some.ko", b"TRAILER!!!"),
    ]


def make_module(folder: Path, name: str, depends: str) -> Path:
    path = folder / f"{name}.ko"
    path.write_bytes(b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0name=x\0")
    return path


def test_modules_are_loaded_after_those_that_they_need(tmp_path: Path) -> None:
    wanted = [
        "ata_piix",
        "sd_mod",
        "ext4",
        "overlay",
        "virtio_pci",
        "9p",
        "9pnet_virtio",
        "crc32c_generic",
    ]
    needs = {"ext4": "jbd2,mb-cache", "ata_piix": "libata"}
    for name in wanted:
        make_module(tmp_path, name, needs.get(name, ""))
    for name in ("jbd2", "mb-cache", "libata"):
        make_module(tmp_path, name, "")
    order = [path.stem.replace("-", "_") for path in initrd.modules_in_order(tmp_path)]
    assert sorted(order) == sorted([*wanted, "jbd2", "mb_cache", "libata"])
    assert order.index("jbd2") < order.index("ext4") > order.index("mb_cache")
    assert order.index("libata") < order.index("ata_piix")
    (tmp_path / "libata.ko").unlink()
    with pytest.raises(BuildError, match="no module libata"):
        initrd.modules_in_order(tmp_path)


def test_the_root_keeps_copyright_files_and_drops_other_documentation(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("usr/share/doc/bash/copyright", "usr/share/doc/bash/NEWS", "usr/share/man/x.1"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text")
    (root / "usr/bin").mkdir()
    (root / "usr/bin/ps").write_text("a program of a package")
    program = tmp_path / "program"
    program.write_bytes(b"program")
    root_disk.arrange(root, program, program)
    assert [path.name for path in (root / "usr/share/doc/bash").iterdir()] == ["copyright"]
    assert not (root / "usr/share/man").exists()
    assert (root / "usr/bin/ps").read_text() == "a program of a package"
    assert (root / "usr/bin/vi").readlink() == Path("busybox")
    assert (root / root_disk.AGENT).stat().st_mode & 0o777 == 0o755


def test_the_agent_is_a_static_program_for_i386(tmp_path: Path) -> None:
    from userland.builder.commands import Commands
    from userland.builder.toolchain import find_toolchain

    if find_toolchain(Commands()) is None:
        pytest.skip("the toolchain is not installed")
    build._compile_agent(tmp_path / "agent", Commands())
    content = (tmp_path / "agent").read_bytes()
    assert content[:5] == b"\x7fELF\x01"
    assert b"/lib/ld-" not in content
    done = subprocess.run(["file", tmp_path / "agent"], capture_output=True, text=True)
    assert done.returncode or "Intel 80386" in done.stdout or "Intel i386" in done.stdout


def test_the_machine_is_no_recipe_and_not_built_by_default() -> None:
    from userland.builder.recipe import built_by_default, load_recipes

    recipes = load_recipes(cli.RECIPES, cli.ROOT)
    assert "v86" not in recipes
    assert "v86" not in built_by_default(recipes)
