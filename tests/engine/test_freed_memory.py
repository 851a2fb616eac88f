"""How much freed memory the C library's allocator keeps."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COUNT_ARENAS = """
import ctypes, re, threading
from wasmsand.engine.freed_memory import c_library, have_few_arenas
have_few_arenas(c_library())
together = threading.Barrier(12)

def use():
    together.wait()
    block = ctypes.create_string_buffer(1 << 16)  # malloc's, in the arena of this thread
    together.wait()

threads = [threading.Thread(target=use) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
import sys
stream = libc.fopen(sys.argv[1].encode(), b"w")
libc.malloc_info(0, stream)
libc.fclose(stream)
print(len(re.findall("<heap nr=", open(sys.argv[1]).read())))
"""


def has_arenas() -> bool:
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (AttributeError, ValueError, OSError):
        return False


@pytest.mark.skipif(not has_arenas(), reason="only the GNU C library has arenas")
@pytest.mark.parametrize(
    ("variable", "least", "most"),
    [({}, 1, 2), ({"MALLOC_ARENA_MAX": "8"}, 3, 8)],
    ids=["two by default", "as many as the user has set"],
)
def test_threads_share_a_few_arenas(
    tmp_path: object, variable: dict[str, str], least: int, most: int
) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "MALLOC_ARENA_MAX"}
    environment["PYTHONMALLOC"] = "malloc"  # so that Python's own allocations use arenas too
    command = [sys.executable, "-c", COUNT_ARENAS, f"{tmp_path}/info"]
    done = subprocess.run(
        command, env={**environment, **variable}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert least <= int(done.stdout) <= most
