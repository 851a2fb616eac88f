"""Random operations give the same results and errors on our tree and on the host's Linux."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.vfs.reference import Operation, Result
from tests.kernel.vfs.script import TOP, Script, TreeRunner
from wasmsand.kernel import flags as numbers
from wasmsand.kernel.vfs import ROOT, Namespace, Node, TreeFs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the reference is Linux")

SEEDS = range(16)
LENGTH = 400


@pytest.fixture
def real_directory() -> Iterator[Path]:
    """A directory that other users can enter, unlike pytest's."""
    made = Path(tempfile.mkdtemp(prefix="vfs-reference-"))
    made.chmod(0o755)
    top = made / TOP
    top.mkdir(parents=True)
    top.chmod(0o777)
    yield top
    open_up(made)
    shutil.rmtree(made)


def open_up(directory: Path) -> None:
    """Give the user of the test access to every directory that the operations closed."""
    directory.chmod(0o700)
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            open_up(Path(entry.path))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_operations_give_the_results_of_linux(seed: int, real_directory: Path) -> None:
    operations = Script(seed).operations(LENGTH)
    script = Path(__file__).with_name("reference.py")
    done = subprocess.run(
        [sys.executable, str(script), str(real_directory)],
        input=json.dumps(operations),
        capture_output=True,
        text=True,
        check=True,
    )
    expected: list[Result] = json.loads(done.stdout)
    runner = TreeRunner()
    history = []
    for operation, wanted in zip(operations, expected, strict=True):
        got = runner.run(operation)
        history.append(f"{operation} -> {wanted}"[:200])
        assert same(operation, got, wanted), "\n".join([*history[-40:], f"but our tree: {got}"])
    assert_no_leak(runner)


def same(operation: Operation, got: Result, wanted: Result) -> bool:
    if got == ["error", "ELOOP"] and wanted == ["error", "EACCES"]:
        # New Linux refuses a link in a sticky directory before it reports that it is a link.
        flags = os.O_CREAT | os.O_NOFOLLOW
        return bool(operation[1] == "open" and operation[4] & flags == flags)
    return got == wanted


def assert_no_leak(runner: TreeRunner) -> None:
    """After everything is removed, no byte and no inode is left charged."""
    namespace = runner.namespace
    for slot in list(runner.files):
        runner.close(slot)
    runner.go_home()
    namespace.release(runner.top)
    tree = namespace.root.fs
    assert isinstance(tree, TreeFs)
    remove_below(namespace, namespace.root)
    assert (tree.space.used_bytes, tree.space.used_inodes) == (0, 0)


def remove_below(namespace: Namespace, directory: Node) -> None:
    for entry in namespace.readdir(directory, 0, 10_000)[2:]:
        child = namespace.resolve(ROOT, directory, entry.name, follow=False)
        if entry.type == numbers.S_IFDIR:
            remove_below(namespace, child)
            namespace.rmdir(ROOT, directory, entry.name)
        else:
            namespace.unlink(ROOT, directory, entry.name)
