"""Saving to disks that are full or read-only: a typed error, and nothing is lost.

Each test runs in a process with mounts of its own, where a small file system in memory is the disk.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest


@cache
def _can_mount() -> bool:
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not _can_mount(), reason="needs user and mount namespaces")

BEGIN = """
import errno, os, subprocess, sys
from wasmsand import Sandbox, StateError, StoreError
disk = sys.argv[1]

def make_read_only(value):
    subprocess.run(["mount", "-o", "remount," + ("ro" if value else "rw"), disk], check=True)

def failed(act, kind):
    try:
        act()
    except kind as error:
        print(type(error).__name__, str(error).replace(disk, "DISK"), flush=True)
"""


def output_of(program: str, tmp_path: Path) -> list[str]:
    """Run a program whose first argument is a disk of 2 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = 'mount -t tmpfs -o size=2m none "$1" && exec "$2" -c "$3" "$1"'
    text = BEGIN + textwrap.dedent(program)
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(disk), sys.executable, text]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_store_on_a_full_disk_keeps_the_old_state(tmp_path: Path) -> None:
    shown = output_of(
        """
        sandbox = Sandbox.open("one", store=disk)
        sandbox.files.write("f", "first")
        sandbox.flush()
        sandbox.commands.run("head -c 5000000 /dev/urandom > f")
        for act in (sandbox.flush, sandbox.pause, sandbox.kill):
            failed(act, StoreError)
        print(len(sandbox.files.read("f")))
        sandbox.kill(discard=True)
        with Sandbox.open("one", store=disk) as again:
            print(again.files.read_text("f"), len(os.listdir(disk + "/states")))
        """,
        tmp_path,
    )
    message = (
        "StoreError cannot save 'one'; the last saved state is unchanged in DISK: "
        "No space left on device"
    )
    assert shown == [message] * 3 + ["5000000", "first 1"]


def test_a_store_on_a_read_only_disk_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    shown = output_of(
        """
        with Sandbox.open("one", store=disk) as sandbox:
            sandbox.files.write("f", "first")
        make_read_only(True)
        for name in ("one", "two"):
            failed(lambda: Sandbox.open(name, store=disk), StoreError)
        make_read_only(False)
        with Sandbox.open("one", store=disk) as again:
            print(again.files.read_text("f"))
        """,
        tmp_path,
    )
    assert shown == [
        "StoreError cannot open 'one' in DISK: Read-only file system",
        "StoreError cannot open 'two' in DISK: Read-only file system",
        "first",
    ]


@pytest.mark.parametrize("problem", ["full", "read-only"])
def test_a_file_on_a_bad_disk_stays_what_it_was(tmp_path: Path, problem: str) -> None:
    shown = output_of(
        f"""
        with Sandbox() as sandbox:
            session = sandbox.python()
            session.run("import os; x = 1")
            sandbox.save(disk + "/m.wsand")
            session.run("x = 2; data = os.urandom(5_000_000)")
            make_read_only({problem == "read-only"})
            failed(lambda: sandbox.save(disk + "/m.wsand"), StateError)
            print(session.run("x, len(data)").repr)
        print(os.listdir(disk))
        with Sandbox.load(disk + "/m.wsand") as old:
            print(old.sessions[0].run("x").value)
        """,
        tmp_path,
    )
    reason = "No space left on device" if problem == "full" else "Read-only file system"
    assert shown == [
        f"StateError cannot save to DISK/m.wsand: {reason}",
        "(2, 5000000)",
        "['m.wsand']",
        "1",
    ]
