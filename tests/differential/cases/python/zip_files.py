"""zipfile, tarfile, gzip, bz2, lzma: written, listed, read."""

import bz2
import gzip
import lzma
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path

tree = Path("tree/sub")
tree.mkdir(parents=True)
(tree / "a.txt").write_text("alpha\n" * 1000)
Path("tree/ünï.bin").write_bytes(bytes(range(256)))
with zipfile.ZipFile("t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for path in sorted(Path("tree").rglob("*")):
        archive.write(path)
    archive.writestr(zipfile.ZipInfo("made.txt", (2024, 1, 2, 3, 4, 6)), "made")
with zipfile.ZipFile("t.zip") as archive:
    for info in archive.infolist():
        print(info.filename, info.file_size, info.compress_type)
    print(archive.testzip(), archive.read("made.txt"), archive.getinfo("made.txt").date_time)
    archive.extractall("unzipped")
print(sorted(p.as_posix() for p in Path("unzipped").rglob("*")))
for kind in ("gz", "bz2", "xz"):
    with tarfile.open(f"t.tar.{kind}", f"w:{kind}") as archive:
        archive.add("tree")
    with tarfile.open(f"t.tar.{kind}") as archive:
        print(kind, sorted(archive.getnames()), archive.extractfile("tree/sub/a.txt").read(6))
data = b"compress me " * 5000
for module in (gzip, bz2, lzma):
    packed = module.compress(data)
    print(module.__name__, len(packed) < len(data) // 50, module.decompress(packed) == data)
print(zlib.crc32(data), zlib.adler32(data), len(zlib.compress(data, 9)))
print(Path(shutil.make_archive("made", "zip", "tree")).name, shutil.unpack_archive("made.zip", "again"))
for name in ("t.zip", "t.tar.gz", "t.tar.bz2", "t.tar.xz", "made.zip"):
    Path(name).unlink()
