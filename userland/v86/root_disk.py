"""The machine's disks: the root file system, and the scratch disk for what users write.

Owns the content of the root. Rules: programs are Debian's own, unpacked and not configured; manual
pages and translations are left out, copyright files are kept; everything belongs to root except
the user's home; the disks are ext4, made by mke2fs without mounting anything.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from userland.builder.commands import Commands
from userland.builder.errors import BuildError, MissingTool

SCRATCH_BYTES = 1 << 30
"""The largest amount of data that a user can write."""
SCRATCH_INODES = 65536
AGENT = "usr/lib/wasmsand/agent"
_LEFT_OUT = (
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/bug",
    "usr/share/doc-base",
    "usr/share/menu",
    "usr/share/applications",
    "usr/share/gcc",
    "usr/share/zoneinfo/right",
    "usr/share/zoneinfo/posix",
    "usr/lib/python3.11/lib2to3",
    "usr/lib/python3.11/ensurepip",
    "usr/share/readline",
    "usr/share/perl5",
)
_MERGED = ("bin", "sbin", "lib")
_DIRECTORIES = {
    "dev": 0o755,
    "proc": 0o755,
    "sys": 0o755,
    "run": 0o755,
    "root": 0o700,
    "tmp": 0o1777,
    "var/tmp": 0o1777,
    "var/log": 0o755,
    "mnt": 0o755,
    "etc": 0o755,
    "home/user": 0o755,
    "opt": 0o755,
    "srv": 0o755,
    "usr/local/bin": 0o755,
    "usr/local/lib/python3.11/dist-packages": 0o755,
}
_OF_USER = ("/home/user", "/opt", "/srv")
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/home/user:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\ntty:x:5:\nusers:x:100:user\nuser:x:1000:\nnogroup:x:65534:\n",
    "etc/hostname": "sandbox\n",
    "etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/profile": "export PATH=/usr/local/bin:/usr/bin:/bin\n",
    "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\n'
    'VERSION_ID="12"\nID=debian\n',
}
_LINKS = {
    "usr/bin/sh": "bash",
    "usr/bin/awk": "gawk",
    "usr/bin/python3": "python3.11",
    "usr/bin/python": "python3.11",
    "etc/mtab": "../proc/self/mounts",
    "etc/localtime": "/usr/share/zoneinfo/Etc/UTC",
}
_APPLETS = """
    ascii cal clear cpio dc ed fold free fuser getopt hexdump hostname ifconfig ip kill killall less
    more mount nc netstat nslookup pgrep pidof ping pkill ps pstree rev route setsid strings su
    sysctl time top tree tty umount unzip uptime vi w watch wget which xxd dos2unix unix2dos script
    taskset uudecode uuencode flock fallocate hd logger mountpoint
"""
"""Names for which the machine has busybox, unless a package has the program."""


def unpack(files: Iterable[Path], target: Path, commands: Commands) -> None:
    """Unpack Debian packages over each other."""
    if shutil.which("dpkg-deb") is None:
        raise MissingTool("dpkg-deb is not installed", "Build the v86 machine on Debian or Ubuntu.")
    for name in _MERGED:
        (target / "usr" / name).mkdir(parents=True, exist_ok=True)
        (target / name).symlink_to(f"usr/{name}")
    for file in files:
        # dpkg-deb alone would replace the links of the merged /usr by directories.
        archive = target.with_name(f"{target.name}.tar")
        with archive.open("wb") as stream:
            status = commands.run(["dpkg-deb", "--fsys-tarfile", file], output=stream)
        words = ["tar", "--extract", "--keep-directory-symlink", "--no-same-owner"]
        words += ["--preserve-permissions", f"--file={archive}", f"--directory={target}"]
        printed = ""
        if status == 0:
            status, printed = commands.capture(words)
        archive.unlink()
        if status != 0:
            raise BuildError(f"{file.name} could not be unpacked:\n{printed}")


def arrange(root: Path, agent: Path, busybox: Path) -> None:
    """Turn unpacked packages into the machine's root."""
    for name in _LEFT_OUT:
        shutil.rmtree(root / name, ignore_errors=True)
    for path in _documents(root):
        path.unlink()
    for name, mode in _DIRECTORIES.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(mode)
    for name, text in _FILES.items():
        (root / name).unlink(missing_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for name, target in _LINKS.items():
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)
    for source, name in ((agent, AGENT), (busybox, "usr/bin/busybox")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, root / name)
        (root / name).chmod(0o755)
    for applet in _APPLETS.split():
        if not any(
            (root / "usr" / folder / applet).is_symlink()
            or (root / "usr" / folder / applet).exists()
            for folder in ("bin", "sbin")
        ):
            (root / "usr/bin" / applet).symlink_to("busybox")


def _documents(root: Path) -> Iterator[Path]:
    """Documentation other than copyright files."""
    for path in list((root / "usr/share/doc").rglob("*")):
        if path.name != "copyright" and (path.is_file() or path.is_symlink()):
            yield path


def make_root_disk(root: Path, disk: Path, commands: Commands) -> None:
    """Write the directory `root` to an ext4 disk."""
    used = sum(4096 * (1 + path.lstat().st_size // 4096) for path in root.rglob("*"))
    _make_disk(disk, used + used // 8 + (16 << 20), ["-d", str(root)], commands)
    owners = [
        f'sif "{path}" {field} {owner}'
        for path in ["/", *sorted(f"/{found.relative_to(root)}" for found in root.rglob("*"))]
        for field in ("uid", "gid")
        for owner in [1000 if path in _OF_USER else 0]
    ]
    script = disk.with_suffix(".owners")
    script.write_text("\n".join([*owners, "rmdir lost+found"]) + "\n", encoding="utf-8")
    status, printed = commands.capture(["debugfs", "-w", "-f", script, disk])
    script.unlink()
    if status != 0:
        raise BuildError(f"the owners of files could not be set:\n{printed[-2000:]}")


def make_scratch_disk(disk: Path, commands: Commands) -> None:
    """An empty ext4 disk; the file is sparse."""
    # A journal would only cost time: a machine that crashes starts again from its saved state.
    options = ["-O", "^has_journal", "-N", str(SCRATCH_INODES), "-E", "lazy_itable_init=0"]
    _make_disk(disk, SCRATCH_BYTES, options, commands)


def _make_disk(disk: Path, size: int, options: list[str], commands: Commands) -> None:
    with disk.open("wb") as stream:
        stream.truncate(-(-size // (1 << 20)) << 20)
    env = {**os.environ, "E2FSPROGS_FAKE_TIME": "1700000000", "LC_ALL": "C"}
    env["PATH"] = f"{env.get('PATH', '')}:/usr/sbin:/sbin"
    fixed = ["-U", "5a6d1c6c-0a51-4f6b-8b5f-76383673616e"]
    fixed += ["-E", "hash_seed=5a6d1c6c-0a51-4f6b-8b5f-76383673616e"]
    argv = ["mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-b", "4096", *fixed, *options]
    status, printed = commands.capture([*argv, disk], env=env)
    if status != 0:
        raise BuildError(f"a disk of the machine could not be made:\n{printed[-2000:]}")
