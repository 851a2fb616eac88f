"""Files of text and bytes: modes, encodings, newlines, buffering, seeking, mmap, fileinput."""

import fileinput
import io
import mmap
import os
import sys

with open("lines.txt", "w", newline="\r\n") as file:
    file.writelines(f"line {i}\n" for i in range(5))
print(open("lines.txt", "rb").read()[:8], open("lines.txt").readlines()[1:3])
with open("latin.txt", "w", encoding="latin-1") as file:
    file.write("é")
try:
    open("latin.txt", encoding="utf-8").read()
except UnicodeDecodeError as error:
    print(error)
print(open("latin.txt", encoding="utf-8", errors="surrogateescape").read().encode("utf-8", "surrogateescape"))
with open("data.bin", "w+b") as file:
    file.write(bytes(range(100)))
    file.seek(-10, os.SEEK_END)
    print(file.read(3), file.tell())
    file.seek(5)
    file.write(b"XX")
    file.truncate(20)
    file.seek(0)
    print(file.read())
with open("data.bin", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
    print(view[5:7], view.find(b"\x10"), len(view))
    view[0:3] = b"abc"
    view.flush()
print(open("data.bin", "rb").read(4))
with fileinput.input("lines.txt", inplace=True) as stream:
    for line in stream:
        print(line.rstrip().upper())
print(open("lines.txt").read().split("\n"))
with open("append.txt", "a") as file:
    file.write("one")
with open("append.txt", "a+") as file:
    file.write("two")
    file.seek(0)
    print(file.read())
try:
    open("append.txt", "x")
except FileExistsError as error:
    print(error)
buffer = io.BytesIO(b"a\nb")
text = io.TextIOWrapper(buffer)
print(text.readline(), text.read(), io.StringIO("x\ny").readlines(), sys.stdout.isatty())
big = "x" * 1_000_000
with open("big", "w") as file:
    print(file.write(big), file.name, file.mode)
print(os.path.getsize("big"), sum(1 for _ in open("big", "rb").read()) == 1_000_000)
os.remove("big")
