"""Files shared by processes: locks, atomic replacement, FIFOs, descriptors passed on."""

import fcntl
import os
import subprocess
import sys
import tempfile

with open("counter", "w") as file:
    file.write("0")
code = """
import fcntl
for _ in range(25):
    with open("counter", "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        n = int(file.read())
        file.seek(0)
        file.write(str(n + 1))
"""
children = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
print([child.wait() for child in children], open("counter").read())
with open("counter") as file, open("counter") as other:
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        print(error.strerror)
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as file:
    file.write("complete")
os.replace(file.name, "result")
print(open("result").read(), os.path.exists(file.name))
os.mkfifo("fifo")
writer = subprocess.Popen(["sh", "-c", "echo through the fifo > fifo"])
print(open("fifo").read(), writer.wait())
with tempfile.TemporaryFile() as file:
    subprocess.run(["echo", "inherited"], stdout=file)
    file.seek(0)
    print(file.read())
print(os.umask(0o22) >= 0, os.getuid() == os.geteuid(), os.getppid() > 0)
