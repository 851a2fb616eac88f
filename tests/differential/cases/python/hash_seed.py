#| xfail: L029 starts share a hash seed
"""Hashes of strings differ from one start to the next, as does what is random."""

import subprocess
import sys

code = "import random, uuid, os; print(hash('text'), random.random(), uuid.uuid4(), os.urandom(4).hex())"
runs = [subprocess.check_output([sys.executable, "-c", code], text=True).split() for _ in range(6)]
for index, name in enumerate(("hash", "random", "uuid", "urandom")):
    print(name, len({run[index] for run in runs}) > 1)
