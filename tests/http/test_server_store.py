"""The directory of a server's store: crashes, full disks, wrong content."""

from __future__ import annotations

import errno
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

pytest.importorskip("msgspec", reason="pip install 'wasmsand[serve]'")

from wasmsand.http.store import ServerStore
from wasmsand.sdk.errors import StoreBusyError, StoreError

pytestmark = pytest.mark.no_userland

ONE, TWO = "sbx-" + "1" * 24, "sbx-" + "2" * 24
_WRITER = """
import sys
from wasmsand.http.store import ServerStore
store = ServerStore(sys.argv[1])
print("ready", flush=True)
number = int(sys.argv[2])
while True:
    number += 1
    text = b"%d\\n" % number
    store.write(sys.argv[3], "sandbox", text, lambda stream: stream.write(text * 20000))
    print(number, flush=True)
"""


def put(store: ServerStore, identity: str, text: bytes) -> None:
    store.write(identity, "sandbox", b"record of " + text, lambda stream: _write(stream, text))


def _write(stream: IO[bytes], text: bytes) -> None:
    stream.write(text)


def content(store: ServerStore, identity: str) -> bytes:
    with store.open(identity) as stream:
        return stream.read()


def test_a_killed_writer_leaves_the_last_state_or_the_one_before(tmp_path: Path) -> None:
    random.seed(20261116)
    last = 0
    for _ in range(25):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path), str(last), ONE],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(random.random() * 0.15)
        writer.send_signal(signal.SIGKILL)
        told = [int(line) for line in writer.communicate()[0].split()]
        store = ServerStore(tmp_path)
        rows = list(store.all())
        if rows:
            (row,) = rows
            number = int(row.record)
            assert number in range(max([last, *told]), max([last, *told]) + 2)
            assert content(store, ONE) == b"%d\n" % number * 20000
            assert len(list((tmp_path / "states").iterdir())) == 1
            last = number
        else:
            assert not told
        store.close()


def test_a_full_disk_leaves_the_old_state(tmp_path: Path) -> None:
    store = ServerStore(tmp_path)
    put(store, ONE, b"old")

    def fill(stream: IO[bytes]) -> None:
        stream.write(b"half of it")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(StoreError, match="No space left"):
        store.write(ONE, "sandbox", b"new record", fill)
    assert content(store, ONE) == b"old"
    assert store.record(ONE) == b"record of old"
    assert len(list((tmp_path / "states").iterdir())) == 1
    store.close()


def test_states_are_replaced_listed_and_deleted(tmp_path: Path) -> None:
    store = ServerStore(tmp_path)
    put(store, ONE, b"a")
    put(store, TWO, b"bb")
    put(store, ONE, b"ccc")
    assert [(row.id, row.size) for row in store.all()] == [(ONE, 3), (TWO, 2)]
    store.write_record(TWO, b"other")
    store.delete(ONE)
    store.delete(ONE)
    assert [(row.id, row.record) for row in store.all()] == [(TWO, b"other")]
    with pytest.raises(StoreError, match="has no"):
        store.open(ONE)
    store.close()
    assert [file.stat().st_mode & 0o777 for file in (tmp_path / "states").iterdir()] == [0o600]


def test_one_process_has_a_store_at_a_time(tmp_path: Path) -> None:
    store = ServerStore(tmp_path)
    with pytest.raises(StoreBusyError, match=str(os.getpid())):
        ServerStore(tmp_path)
    store.close()
    ServerStore(tmp_path).close()


def test_an_index_that_names_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    store = ServerStore(tmp_path)
    put(store, ONE, b"a")
    put(store, TWO, b"b")
    other = next(file for file in (tmp_path / "states").iterdir() if TWO in file.name)
    for wrong in ("../secret", str(tmp_path / "secret"), "", other.name):
        index = sqlite3.connect(tmp_path / "server.sqlite")
        index.execute("UPDATE states SET file = ? WHERE id = ?", (wrong, ONE))
        index.commit()
        index.close()
        with pytest.raises(StoreError, match="damaged"):
            store.open(ONE)
    store.close()


def test_a_state_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    store = ServerStore(tmp_path)
    put(store, ONE, b"a")
    (file,) = (tmp_path / "states").iterdir()
    file.unlink()
    file.symlink_to(tmp_path / "secret")
    with pytest.raises(StoreError, match="cannot read"):
        store.open(ONE)
    store.close()


def test_a_newer_store_and_a_place_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    ServerStore(tmp_path).close()
    index = sqlite3.connect(tmp_path / "server.sqlite")
    index.execute("PRAGMA user_version = 99")
    index.close()
    with pytest.raises(StoreError, match="newer"):
        ServerStore(tmp_path)
    with pytest.raises(StoreError, match="cannot open the store"):
        ServerStore("/proc/no/such/place")
