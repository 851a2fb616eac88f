"""The first file system of the machine: busybox, kernel modules and init.sh, as a cpio archive.

Rules: only what booting needs; modules are in the order in which they have to be loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from userland.builder.errors import BuildError

INIT = Path(__file__).with_name("init.sh")
_WANTED = (
    "ata_piix",
    "sd_mod",
    "ext4",
    "overlay",
    "virtio_pci",
    "9p",
    "9pnet_virtio",
    "crc32c_generic",
)


def modules_in_order(folder: Path) -> list[Path]:
    """The modules that the machine needs, each after those that it depends on."""
    files = {_name_of(path): path for path in folder.rglob("*.ko")}
    order: list[Path] = []

    def add(name: str) -> None:
        if name not in files:
            raise BuildError(f"the kernel package has no module {name}")
        if files[name] in order:
            return
        for needed in _needs(files[name]):
            add(needed)
        order.append(files[name])

    add("crc32c_generic")  # ext4 asks for it by an alias
    for name in _WANTED:
        add(name)
    return order


def _name_of(path: Path) -> str:
    return path.name.removesuffix(".ko").replace("-", "_")


def _needs(module: Path) -> list[str]:
    """The field `depends` of a module's .modinfo section."""
    content = module.read_bytes()
    start = content.find(b"\0depends=")
    if start < 0:
        return []
    end = content.index(b"\0", start + 1)
    names = content[start + len(b"\0depends=") : end].decode()
    return [name.replace("-", "_") for name in names.split(",") if name]


def make_initrd(busybox: Path, modules: list[Path]) -> bytes:
    """The archive."""
    order = "".join(f"{path.name}\n" for path in modules).encode()
    entries: list[tuple[str, int, bytes, tuple[int, int]]] = [
        ("dev", 0o40755, b"", (0, 0)),
        ("dev/console", 0o20600, b"", (5, 1)),
        ("bin", 0o40755, b"", (0, 0)),
        ("bin/busybox", 0o100755, busybox.read_bytes(), (0, 0)),
        ("bin/sh", 0o120777, b"busybox", (0, 0)),
        ("init", 0o100755, INIT.read_bytes(), (0, 0)),
        ("modules", 0o40755, b"", (0, 0)),
        ("modules/order", 0o100644, order, (0, 0)),
        *((f"modules/{path.name}", 0o100644, path.read_bytes(), (0, 0)) for path in modules),
    ]
    return b"".join(_archive(entries))


def _archive(entries: list[tuple[str, int, bytes, tuple[int, int]]]) -> Iterator[bytes]:
    """The "newc" format of cpio."""
    for number, (name, mode, content, device) in enumerate(
        [*entries, ("TRAILER!!!", 0, b"", (0, 0))], 1
    ):
        fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name) + 1, 0]
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        header += name.encode() + b"\0"
        yield header + bytes(-len(header) % 4)
        yield content + bytes(-len(content) % 4)
