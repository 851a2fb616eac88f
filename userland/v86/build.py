"""`wasmsand build v86`: makes the machine and installs it.

Owns the steps, the key in the cache, and the image directory. Rules: the machine is cached like the
output of a recipe, under a key of everything that decides it; it is installed by renaming a
complete directory; the licences of all parts are in it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from userland.builder.cache import Cache, Entry, remove_tree
from userland.builder.commands import Commands
from userland.builder.errors import BuildError
from userland.builder.keys import file_digest
from userland.builder.progress import Progress, progress_on
from userland.builder.toolchain import LLVM, ensure_programs, ensure_toolchain
from userland.v86 import boot, initrd, pinned, root_disk

NAME = "v86"
IMAGE = Path(__file__).resolve().parents[2] / "src/wasmsand/_v86"
_HERE = Path(__file__).parent
_MANIFEST_FORMAT = 1
_STATE_FORMAT = 1
"""Raise it when machine.mjs saves something else."""
_INPUTS = (
    "packages.toml",
    "agent.c",
    "kernel.h",
    "init.sh",
    "root_disk.py",
    "initrd.py",
    "boot.py",
)
_NEEDED = (("mke2fs", "e2fsprogs"), ("debugfs", "e2fsprogs"), ("dpkg-deb", "dpkg"))
_AGENT_FLAGS = [
    "--target=i386-linux-gnu",
    "-march=i686",
    "-mno-sse",
    "-O2",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-pic",
    "-nostdlib",
    "-static",
    "-fuse-ld=lld",
    "-Wl,--build-id=none",
    "-s",
]
_DISK_OVERHEAD_BYTES = 64 << 20
_LICENCES = """\
# Licences of the v86 machine

The machine consists of the works below, each under its own licence. Nothing of it is part of
wasmsand's source or wheels: `wasmsand build v86` fetches the files named here. The texts of the
licences are in `licences/`; `apt-get source PACKAGE` on Debian fetches the sources.

| what | version | licence | source | file | hash |
|---|---|---|---|---|---|
"""


def build_machine(
    options: argparse.Namespace, console: Console, cache: Cache, commands: Commands
) -> None:
    """Build the machine if it is not cached, and install it."""

    def say(message: str) -> None:
        console.print(Text(message), soft_wrap=True)

    if options.clean:
        freed = cache.clean([NAME], options.downloads)
        remove_tree(IMAGE)
        say(f"removed the v86 machine ({freed / 1e6:.0f} MB)")
        return
    table = pinned.read_table()
    key = _key(table)
    if options.list:
        is_built = cache.find(NAME, key) is not None
        say(f"v86: a Debian for i386 under v86; {'built' if is_built else 'not built'}")
        return
    cache.prepare()
    entry = None if options.rebuild else cache.find(NAME, key)
    if entry is None and options.if_cached:
        say("not built, because it is not cached: v86")
        return
    with progress_on(console) as progress:
        progress.add(NAME, table.v86.version)
        if entry is None:
            entry = _locked_build(table, key, cache, commands, progress, options)
            state = "built"
        else:
            state = "cached"
        _install(entry)
        progress.end(NAME, "built" if state == "built" else "cached", "")
    say(f"the machine is in {IMAGE}")


def _key(table: pinned.Pinned) -> str:
    parts = [file_digest(_HERE / name) for name in _INPUTS]
    parts += [str(_STATE_FORMAT), str(_MANIFEST_FORMAT), LLVM, *_AGENT_FLAGS, table.node.name]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _locked_build(
    table: pinned.Pinned,
    key: str,
    cache: Cache,
    commands: Commands,
    progress: Progress,
    options: argparse.Namespace,
) -> Entry:
    def waiting() -> None:
        progress.step(NAME, "wait for another builder")

    with cache.lock(f"{NAME}-{key[:16]}", commands.stopped, waiting):
        found = None if options.rebuild else cache.find(NAME, key)
        if found is not None:
            return found
        ensure_toolchain(commands, not options.no_install, progress.say)
        _ensure_tools(commands, options, progress.say)
        with cache.scratch(f"{NAME}-{key[:16]}") as scratch:
            return _build(table, key, cache, commands, progress, scratch)


def _ensure_tools(
    commands: Commands, options: argparse.Namespace, say: Callable[[str], None]
) -> None:
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    ensure_programs(_NEEDED, commands, not options.no_install, say)


def _build(
    table: pinned.Pinned,
    key: str,
    cache: Cache,
    commands: Commands,
    progress: Progress,
    scratch: Path,
) -> Entry:
    seconds: dict[str, float] = {}

    def step(name: str, text: str = "") -> None:
        now = time.monotonic()
        if seconds:
            last = list(seconds)[-1]
            seconds[last] = now - seconds[last]
        seconds[name] = now
        progress.step(NAME, text or name)

    log = cache.log_file(NAME, key)
    log.unlink(missing_ok=True)
    out = scratch / "out"
    out.mkdir()
    step("fetch")
    files = pinned.fetch_debian(table.debian, cache, commands)
    node = pinned.fetch_npm(table.node, cache, commands, progress.say)
    v86 = pinned.fetch_npm(table.v86, cache, commands, progress.say)
    step("unpack")
    uses: tuple[pinned.Use, ...] = ("kernel", "bios", "initrd", "root")
    for use in uses:
        (scratch / use).mkdir()
        packages = [files[package.name] for package in table.of_use(use)]
        root_disk.unpack(packages, scratch / use, commands)
    step("disks")
    _compile_agent(scratch / "agent", commands)
    busybox = scratch / "initrd/usr/bin/busybox"
    shutil.copyfile(node / "bin/node", out / "node")
    (out / "node").chmod(0o755)
    (out / "v86").mkdir()
    for name in ("libv86.mjs", "v86.wasm"):
        shutil.copyfile(v86 / "build" / name, out / "v86" / name)
    _write_licences(table, scratch, node, v86, out)
    root_disk.arrange(scratch / "root", scratch / "agent", busybox)
    root_disk.make_root_disk(scratch / "root", out / "root.ext4", commands)
    root_disk.make_scratch_disk(scratch / "scratch.ext4", commands)
    modules = initrd.modules_in_order(scratch / "kernel/usr/lib/modules")
    (scratch / "initrd.cpio").write_bytes(initrd.make_initrd(busybox, modules))
    bios = scratch / "bios/usr/share/seabios"
    parts = {
        "bios": str(bios / "bios.bin"),
        "vga_bios": str(bios / "vgabios-stdvga.bin"),
        "kernel": str(next((scratch / "kernel/boot").glob("vmlinuz-*"))),
        "initrd": str(scratch / "initrd.cpio"),
    }
    step("boot", "boot and save (about a minute)")
    boot.boot_and_save(out, scratch / "scratch.ext4", parts, commands, log)
    step("store")
    _write_manifest(table, out)
    del seconds["store"]
    return cache.publish(NAME, key, out, seconds)


def _compile_agent(target: Path, commands: Commands) -> None:
    words: list[str | Path] = [f"clang-{LLVM}", *_AGENT_FLAGS, "-Wall", "-Wextra", "-Werror"]
    status, printed = commands.capture([*words, "-o", target, _HERE / "agent.c"])
    if status != 0:
        raise BuildError(f"agent.c does not compile:\n{printed}")


def _write_licences(table: pinned.Pinned, scratch: Path, node: Path, v86: Path, out: Path) -> None:
    folder = out / "licences"
    folder.mkdir()
    rows = []
    for package in table.npm:
        if package in (table.node, table.v86):
            source = node if package is table.node else v86
            shutil.copyfile(source / "LICENSE", folder / package.name)
            rows.append(
                f"| {package.name} | {package.version} | {package.licence} | npm "
                f"| {package.name}-{package.version}.tgz | sha512 `{package.sha512}` |\n"
            )
    for each in table.debian:
        text = scratch / each.use / "usr/share/doc" / each.name / "copyright"
        if text.is_file():  # some packages have a link to another one's
            shutil.copyfile(text, folder / each.name)
        rows.append(
            f"| {each.name} | {each.version} | {each.licence} | {each.source.origin} "
            f"| {each.source.file} | sha256 `{each.source.sha256}` |\n"
        )
    (out / "LICENCES.md").write_text(_LICENCES + "".join(rows), encoding="utf-8")


def _write_manifest(table: pinned.Pinned, out: Path) -> None:
    files = ("node", "v86/libv86.mjs", "v86/v86.wasm", "root.ext4", "state.zst")
    kernel = table.of_use("kernel")[0]
    manifest = {
        "format": _MANIFEST_FORMAT,
        "memory_bytes": boot.MEMORY_BYTES,
        "most_memory_bytes": boot.MOST_MEMORY_BYTES,
        "scratch_bytes": root_disk.SCRATCH_BYTES,
        "most_disk_bytes": root_disk.SCRATCH_BYTES - _DISK_OVERHEAD_BYTES,
        "most_inodes": root_disk.SCRATCH_INODES,
        "versions": {
            "v86": table.v86.version,
            "node": table.node.version,
            "linux": kernel.version,
        },
        "files": {name: file_digest(out / name) for name in files},
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _install(entry: Entry) -> None:
    """Put the machine into the image directory: links to the cache where that is possible."""
    current = IMAGE / "manifest.json"
    wanted = entry.folder / "manifest.json"
    if current.is_file() and current.read_bytes() == wanted.read_bytes():
        return
    temporary = IMAGE.with_name(f"_v86-{os.getpid()}")
    remove_tree(temporary)
    shutil.copytree(entry.folder, temporary, copy_function=_link_or_copy)
    remove_tree(IMAGE)
    temporary.rename(IMAGE)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
