"""Programs that start from a checkpoint, from C source to the sandbox."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from conformance.supplies import ROOT
from tests.programs.compiling import compiled
from userland.builder.stored_module import stored_module, with_variables_exported
from wasmsand import Sandbox
from wasmsand.engine.abilities import MemoryImage
from wasmsand.kernel.vfs import FrozenTree, ImageBuilder, standard_tree
from wasmsand.machine import CheckpointFailed, capture_at_checkpoint, run_to_checkpoint

CHECKPOINT = ROOT / "userland/libc/checkpoint"
SOURCES = [Path(__file__).with_name("stored.c"), CHECKPOINT / "checkpoint.c"]
TABLE_SUM = sum(range(300))


def image(program: bytes | None = None) -> FrozenTree:
    """A tree, with this program as `/usr/bin/plain`."""
    builder = ImageBuilder()
    standard_tree(builder)
    if program is not None:
        builder.add_file(b"/usr/bin/plain", lambda: program, 0o755, size=len(program))
    return builder.build()


def store(plain: bytes, environ: Mapping[str, str] | None = None) -> bytes:
    module = with_variables_exported(plain)
    checkpoint = run_to_checkpoint("/bin/stored", environ or {}, image=image(), module=module)
    return stored_module(plain, checkpoint.memory, checkpoint.variables)


@pytest.fixture(scope="module")
def plain(sysroot: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return compiled(SOURCES, sysroot, tmp_path_factory.mktemp("plain"), f"-I{CHECKPOINT}")


@pytest.fixture(scope="module")
def stored(plain: bytes) -> bytes:
    return store(plain)


@pytest.fixture
def sandbox(plain: bytes, stored: bytes) -> Iterator[Sandbox]:
    with Sandbox(env={"NAME": "value"}) as made:
        made.files.write("plain", plain)
        made.files.write("stored", stored)
        made.commands.run("chmod +x plain stored")
        yield made


def test_a_start_begins_where_the_program_was_stored(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("./stored one")
    assert result.stdout.splitlines()[0] == (
        f"resumed: constructed 1, sum {TABLE_SUM}, argc 2, argv one, NAME value, called stored"
    )
    assert result.exit_code == 4


def test_the_plain_program_starts_from_the_beginning(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("NAME=other ./plain")
    assert result.stdout == (
        "plain: constructed 1, sum 0, argc 1, argv -, NAME other, called plain\n"
    )
    assert result.exit_code == 3


def test_every_start_begins_from_the_stored_state(sandbox: Sandbox) -> None:
    first = sandbox.commands.run("./stored fork; ./stored fork")
    assert first.stdout.count(f"resumed: constructed 1, sum {TABLE_SUM},") == 2


def test_a_stored_program_forks(sandbox: Sandbox) -> None:
    lines = sandbox.commands.run("./stored fork").stdout.splitlines()
    assert lines[2].startswith(f"child: constructed 1, sum {TABLE_SUM + 1001},")
    assert lines[3] == "status 5"
    assert lines[4].startswith(f"parent: constructed 1, sum {TABLE_SUM + 1000},")


def test_a_start_from_a_captured_preparation_has_its_random_numbers(
    plain: bytes, stored: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = hashlib.sha256(stored).hexdigest()
    newest: dict[str, MemoryImage] = {}
    monkeypatch.setattr(
        "wasmsand.machine.machine.newest_image", lambda engine, wanted: newest.get(wanted)
    )
    seeds = set()
    for _ in range(3):
        with Sandbox(env={"NAME": "value"}) as fresh:
            fresh.files.write("stored", stored)
            fresh.commands.run("chmod +x stored")
            lines = fresh.commands.run("./stored fork").stdout.splitlines()
        assert lines[0] == (
            f"resumed: constructed 1, sum {TABLE_SUM}, argc 2, argv fork, NAME value, called stored"
        )
        assert lines[2].startswith(f"child: constructed 1, sum {TABLE_SUM + 1001},")
        assert lines[4].startswith(f"parent: constructed 1, sum {TABLE_SUM + 1000},")
        seeds.add(lines[1])
        newest[key] = capture_at_checkpoint("/usr/bin/plain", image=image(plain))
    assert len(seeds) == 3


@pytest.mark.parametrize("act", ["open", "write", "exit"])
def test_a_process_that_cannot_be_stored_is_not_captured(plain: bytes, act: str) -> None:
    environ = {"OBSTACLE": act}
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(CheckpointFailed),
    ):
        patch.setattr("wasmsand.machine.checkpoint.ENVIRONMENT", environ)
        capture_at_checkpoint("/usr/bin/plain", image=image(plain))


def test_storing_twice_gives_the_same_bytes(plain: bytes, stored: bytes) -> None:
    assert store(plain) == stored


def test_the_stack_is_not_stored(plain: bytes, stored: bytes) -> None:
    assert b"x" * 5000 not in stored
    assert len(stored) < len(plain) + 4096 * 400


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        ("open", "open files: 3"),
        ("close", "closed standard files: 0"),
        ("chdir", "another working directory"),
        ("umask", "umask 077"),
        ("ignore", "signal actions: SIGPIPE"),
        ("block", "blocked signals: SIGINT"),
        ("alarm", "a timer"),
        ("child", "child processes"),
        ("write", "it has written: hello"),
        ("exit", "ended with 9 before it reached a checkpoint"),
    ],
)
def test_a_process_that_cannot_be_stored_is_refused(plain: bytes, act: str, complaint: str) -> None:
    with pytest.raises(CheckpointFailed) as failure:
        store(plain, {"OBSTACLE": act})
    assert complaint in str(failure.value)


def test_a_guest_cannot_have_itself_stored(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("./plain store")
    assert (result.exit_code, result.stderr) == (127, "checkpoint: Function not implemented\n")
