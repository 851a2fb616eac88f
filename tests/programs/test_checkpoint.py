"""Programs that start from a checkpoint, from C source to the sandbox."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from conformance.supplies import ROOT
from tests.machine.image_directories import prepared_entry, program_entry, write_manifest
from tests.programs.compiling import compiled
from userland.builder.stored_memory import RESUME_ENTRY, stack_reserve_of, stored_content
from wasmsand.engine import default_engine
from wasmsand.kernel.vfs import FrozenTree, ImageBuilder, standard_tree
from wasmsand.machine import (
    Checkpoint,
    CheckpointFailed,
    CommandRequest,
    Completed,
    Machine,
    capture_at_checkpoint,
    image_at,
    image_programs,
    renewal,
    run_to_checkpoint,
)
from wasmsand.machine.renewal import prepared_memories

CHECKPOINT = ROOT / "userland/libc/checkpoint"
SOURCES = [Path(__file__).with_name("stored.c"), CHECKPOINT / "checkpoint.c"]
TABLE_SUM = sum(range(300))


def image(program: bytes) -> FrozenTree:
    """A tree with this program as `/usr/bin/plain`."""
    builder = ImageBuilder()
    standard_tree(builder)
    key = hashlib.sha256(program).hexdigest()
    builder.add_file(b"/usr/bin/plain", lambda: program, 0o755, size=len(program), content_key=key)
    return builder.build()


def store(plain: bytes, environ: Mapping[str, str] | None = None) -> tuple[Checkpoint, bytes]:
    """The program at its checkpoint, and the file of its memory."""
    checkpoint = run_to_checkpoint("/usr/bin/plain", environ or {}, image=image(plain))
    return checkpoint, stored_content(checkpoint.memory, stack_reserve_of(plain))[1]


@pytest.fixture(scope="module")
def plain(sysroot: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return compiled(SOURCES, sysroot, tmp_path_factory.mktemp("plain"), f"-I{CHECKPOINT}")


@pytest.fixture(scope="module")
def directory(plain: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with the program, prepared and not."""
    made = tmp_path_factory.mktemp("image")
    checkpoint, content = store(plain)
    reserve = stack_reserve_of(plain)
    entry = program_entry(made, "stored", plain, "/usr/bin/plain")
    entry["prepared"] = prepared_entry(
        made,
        "stored",
        content,
        "/usr/bin/stored",
        first=reserve - reserve % 65536,
        memory_size=len(checkpoint.memory),
    )
    return write_manifest(made, [entry])


Run = Callable[..., Completed]


@pytest.fixture
def run(directory: Path) -> Iterator[Run]:
    machine = Machine(image=image_at(directory))

    def run(*argv: str, name: str = "value") -> Completed:
        return machine.run(CommandRequest(argv, {"NAME": name}, "/tmp"))

    yield run
    machine.close()


def lines(completed: Completed) -> list[str]:
    return completed.stdout.decode().splitlines()


def test_a_start_begins_where_the_program_was_stored(run: Run) -> None:
    result = run("stored", "one")
    assert lines(result)[0] == (
        f"resumed: constructed 1, sum {TABLE_SUM}, argc 2, argv one, NAME value, called stored"
    )
    assert result.exit_code == 4


def test_the_plain_program_starts_from_the_beginning(run: Run) -> None:
    result = run("plain", name="other")
    assert result.stdout == (
        b"plain: constructed 1, sum 0, argc 1, argv -, NAME other, called plain\n"
    )
    assert result.exit_code == 3


def test_every_start_begins_from_the_stored_state(run: Run) -> None:
    for _ in range(2):
        assert lines(run("stored", "fork"))[0].startswith(
            f"resumed: constructed 1, sum {TABLE_SUM},"
        )


def test_a_stored_program_forks(run: Run) -> None:
    shown = lines(run("stored", "fork"))
    assert shown[2].startswith(f"child: constructed 1, sum {TABLE_SUM + 1001},")
    assert shown[3] == "status 5"
    assert shown[4].startswith(f"parent: constructed 1, sum {TABLE_SUM + 1000},")


def test_a_copy_that_a_guest_makes_starts_from_the_beginning(directory: Path) -> None:
    machine = Machine(image=image_at(directory))
    machine.files.write("/tmp/copy", machine.files.read("/usr/bin/stored"), mode=0o755)
    copied = machine.run(CommandRequest(("/tmp/copy",), {}, "/tmp"))
    machine.close()
    assert lines(copied)[0].startswith("plain: constructed 1, sum 0,")


def test_a_program_that_was_written_to_starts_from_the_beginning(directory: Path) -> None:
    machine = Machine(image=image_at(directory))
    content = machine.files.read("/usr/bin/stored")
    machine.files.write("/usr/bin/stored", content, mode=0o755)
    written = machine.run(CommandRequest(("stored",), {}, "/tmp"))
    machine.close()
    assert lines(written)[0].startswith("plain: constructed 1, sum 0,")


def test_a_start_from_a_captured_preparation_has_its_random_numbers(
    plain: bytes, directory: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = image_programs(directory)
    assert program.prepared is not None
    memories = prepared_memories(default_engine())
    monkeypatch.delenv(renewal.VARIABLE, raising=False)

    def unwanted() -> NoReturn:
        raise AssertionError("this test captures memory itself")

    seeds = set()
    for _ in range(3):
        shown = lines(run("stored", "fork"))
        assert shown[0] == (
            f"resumed: constructed 1, sum {TABLE_SUM}, argc 2, argv fork, NAME value, called stored"
        )
        assert shown[2].startswith(f"child: constructed 1, sum {TABLE_SUM + 1001},")
        assert shown[4].startswith(f"parent: constructed 1, sum {TABLE_SUM + 1000},")
        seeds.add(shown[1])
        image = capture_at_checkpoint("/usr/bin/plain", RESUME_ENTRY, image=image_at(directory))
        made = renewal.Renewal(image, unwanted, lambda job: None)
        monkeypatch.setitem(memories._known, program.prepared.memory.sha256, made)
    assert len(seeds) == 3


@pytest.mark.parametrize("act", ["open", "write", "exit"])
def test_a_process_that_cannot_be_stored_is_not_captured(plain: bytes, act: str) -> None:
    environ = {"OBSTACLE": act}
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(CheckpointFailed),
    ):
        patch.setattr("wasmsand.machine.checkpoint.ENVIRONMENT", environ)
        capture_at_checkpoint("/usr/bin/plain", RESUME_ENTRY, image=image(plain))


def test_storing_twice_gives_the_same_bytes(plain: bytes) -> None:
    assert store(plain) == store(plain)


def test_the_stack_is_not_stored(plain: bytes) -> None:
    content = store(plain)[1]
    assert b"x" * 5000 not in content
    assert len(content) < len(plain) + 4096 * 400


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


def test_a_guest_cannot_have_itself_stored(run: Run) -> None:
    result = run("plain", "store")
    assert (result.exit_code, result.stderr) == (127, b"checkpoint: Function not implemented\n")
