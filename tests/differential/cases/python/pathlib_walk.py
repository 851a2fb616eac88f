"""Files and directories: pathlib, os, shutil, glob, tempfile, stat."""

import glob
import os
import shutil
import stat
import tempfile
from pathlib import Path

root = Path("project")
for name in ("src/main.py", "src/util/io.py", "docs/index.md", ".hidden/x", "README"):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {name}\n")
print(sorted(p.relative_to(root).as_posix() for p in root.rglob("*.py")))
print(sorted(glob.glob("project/**/*.md", recursive=True)), (root / "src").is_dir())
for folder, directories, files in os.walk(root):
    directories.sort()
    print(folder, directories, sorted(files))
os.chmod(root / "README", 0o640)
print(stat.filemode((root / "README").stat().st_mode), (root / "README").stat().st_size)
os.symlink("README", root / "link")
print(os.readlink(root / "link"), (root / "link").resolve().name, (root / "link").is_symlink())
shutil.copytree(root, "copy", ignore=shutil.ignore_patterns(".*", "*.md"), symlinks=True)
print(sorted(os.listdir("copy")), shutil.disk_usage(".").total > 0)
(root / "README").rename(root / "READ.ME")
print(root.joinpath("READ.ME").with_suffix(".txt"), Path("/a/b/../c.tar.gz").suffixes, Path("a/b").parts)
shutil.rmtree(root)
print(root.exists())
with tempfile.TemporaryDirectory(dir=".") as folder, tempfile.NamedTemporaryFile("w+", dir=folder) as file:
    file.write("temporary")
    file.flush()
    print(os.path.getsize(file.name), os.listdir(folder) == [os.path.basename(file.name)])
for action in (lambda: os.mkdir("copy"), lambda: open("nowhere/x"), lambda: os.rmdir("copy"), lambda: open("copy")):
    try:
        action()
    except OSError as error:
        print(type(error).__name__, error.errno, error.strerror, error.filename)
fd = os.open("raw", os.O_CREAT | os.O_RDWR, 0o600)
os.write(fd, b"0123456789")
os.lseek(fd, 3, os.SEEK_SET)
os.ftruncate(fd, 6)
print(os.read(fd, 10), os.fstat(fd).st_size, os.path.exists("raw"), os.access("raw", os.X_OK))
os.close(fd)
