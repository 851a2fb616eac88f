"""Sandboxes saved to one file, and loaded, in this and in other processes."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_until
from wasmsand import (
    Network,
    Sandbox,
    SandboxOptions,
    Snapshot,
    StateError,
    StateFileError,
    StateLimitError,
    StateVersionError,
)
from wasmsand.machine.saved.framing import MAGIC, FrameReader, read_header
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.shell import Shell

ROWS = 100_000


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


def in_another_process(program: str, *arguments: str) -> str:
    """The output of a program of the host."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


def loaded(saved: bytes, options: SandboxOptions | None = None) -> Sandbox:
    return Sandbox.load(io.BytesIO(saved), options=options)


def saved(sandbox: Sandbox) -> bytes:
    stream = io.BytesIO()
    sandbox.save(stream)
    return stream.getvalue()


def unpacked(content: bytes) -> bytes:
    """Everything in a file, without compression."""
    stream = io.BytesIO(content)
    header = read_header(stream)
    frame = FrameReader(stream, header["codec"], 1 << 40)
    pieces = [repr(header).encode()]
    while (kind := frame.peek()) != b"E":
        pieces.append(frame.take(kind))
    frame.finish()
    return b"".join(pieces)


def test_a_table_in_a_python_session_goes_on_in_another_process(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    session = sandbox.python()
    session.run(f"rows = [{{'id': n, 'value': n * 2}} for n in range({ROWS})]")
    session.run("def total(): return sum(row['value'] for row in rows)")
    sandbox.save(tmp_path / "m.wsand")
    session.run("rows.clear()")
    program = """
        import sys
        from wasmsand import Sandbox
        with Sandbox.load(sys.argv[1]) as sandbox:
            session = sandbox.sessions[0]
            print(session.run("total()").value)
            session.run("rows[7]['value'] = 1000")
            print(session.run("total()").value, session.run("len(rows)").value)
            sandbox.save(sys.argv[1])
    """
    before = ROWS * (ROWS - 1)
    after = before - 14 + 1000
    assert in_another_process(program, str(tmp_path / "m.wsand")) == (f"{before}\n{after} {ROWS}\n")
    with Sandbox.load(tmp_path / "m.wsand") as again:
        assert python_of(again).run("total()").value == after


def python_of(sandbox: Sandbox, position: int = 0) -> PythonSession:
    session = sandbox.sessions[position]
    assert isinstance(session, PythonSession)
    return session


def shell_of(sandbox: Sandbox, position: int = 0) -> Shell:
    session = sandbox.sessions[position]
    assert isinstance(session, Shell)
    return session


def test_a_shell_goes_on_in_another_process(sandbox: Sandbox, tmp_path: Path) -> None:
    shell = sandbox.shell()
    shell.run(
        "mkdir -p /tmp/deep; cd /tmp/deep; name=kept; list=(a 'b c'); exec 7</etc/hostname\n"
        "greet() { echo hello $1 from $name; }; trap 'echo got USR1' USR1; umask 027"
    )
    sandbox.save(tmp_path / "m.wsand")
    program = """
        import sys
        from wasmsand import Sandbox
        with Sandbox.load(sys.argv[1]) as sandbox:
            shell = sandbox.sessions[0]
            print(shell.run("pwd; greet you; kill -USR1 $$; trap -p; cat <&7").stdout, end="")
            print(shell.run("umask; echo ${#list[@]} | cat; cd ..; pwd").stdout, end="")
    """
    assert in_another_process(program, str(tmp_path / "m.wsand")) == (
        "/tmp/deep\nhello you from kept\ngot USR1\ntrap -- 'echo got USR1' SIGUSR1\nsandbox\n"
        "0027\n2\n/tmp\n"
    )


def test_files_are_what_they_were(sandbox: Sandbox) -> None:
    sandbox.commands.run(
        "mkdir -p d/e; echo text > d/f; ln d/f d/hard; ln -s ../f d/e/link; mkfifo d/fifo\n"
        "truncate -s 1G d/sparse; printf end >> d/sparse; chmod 640 d/f; touch -d @12345 d/e\n"
        "printf 'a\\nb' > \"$(printf 'd/\\377\\nname')\"; rm /usr/share/info -rf; chmod 700 d"
    )
    show = (
        "cd /home/user; find d -printf '%P %y %m %s %n %b %l %T@\\n' | sort; cat d/hard; "
        "tail -c 3 d/sparse; ls -d /usr/share/info 2>&1; [ d/f -ef d/hard ] && echo same"
    )
    expected = sandbox.commands.run(show).stdout
    assert "same" in expected
    assert "hard f 640 5 2" in expected
    with loaded(saved(sandbox)) as copy:
        assert copy.commands.run(show).stdout == expected


def test_variables_and_working_directory_are_kept(tmp_path: Path) -> None:
    with Sandbox(env={"A": "1"}, cwd="/tmp/work", timeout_ms=7000) as sandbox:
        sandbox.env.set("B", "two words")
        sandbox.save(tmp_path / "m.wsand")
    with Sandbox.load(tmp_path / "m.wsand") as copy:
        assert copy.commands.run("pwd; echo $A $B").stdout == "/tmp/work\n1 two words\n"
        assert copy.options.timeout_ms == 7000
        assert copy.options.cwd == "/tmp/work"


def test_open_files_keep_their_positions_and_files_without_a_name_exist(sandbox: Sandbox) -> None:
    session = sandbox.python()
    session.run(
        "import os, tempfile\n"
        "log = open('log', 'w+'); log.write('0123456789'); log.flush(); log.seek(4)\n"
        "unnamed = tempfile.TemporaryFile(); unnamed.write(b'no name'); unnamed.flush()\n"
        "gone = open('gone', 'w+'); gone.write('removed'); gone.flush(); os.remove('gone')\n"
        "reader, writer = os.pipe(); os.write(writer, b'in the pipe')\n"
        "twin = os.dup(log.fileno()); os.lseek(twin, 6, 0); null = open('/dev/null', 'rb')"
    )
    sandbox.shell().run("mkdir /tmp/lost; cd /tmp/lost; rmdir /tmp/lost")
    with loaded(saved(sandbox)) as copy:
        check = (
            "os.lseek(log.fileno(), 0, 1), os.read(twin, 2), unnamed.seek(0), unnamed.read(), "
            "gone.seek(0), gone.read(), os.read(reader, 100), null.read()"
        )
        expected = "(6, b'67', 0, b'no name', 0, 'removed', b'in the pipe', b'')"
        assert python_of(copy).run(check).repr == expected
        python_of(copy).run("os.write(writer, b'more')")
        assert python_of(copy).run("os.read(reader, 9)").repr == "b'more'"
        assert shell_of(copy, 1).run("echo works; ls").stdout == "works\n"
        used = copy.usage().inodes
        python_of(copy).run("unnamed.close(); gone.close()")
        assert copy.usage().inodes == used - 2


def test_a_shell_in_removed_directories_is_copied(sandbox: Sandbox) -> None:
    sandbox.shell().run("mkdir -p /tmp/a/b/c; cd /tmp/a/b/c; rm -r /tmp/a; exec 7<.")
    with sandbox.fork() as twin:
        assert shell_of(twin).run("ls; cd ..; ls; cd /; echo left").stdout == "left\n"
        shell_of(twin).run("exec 7<&-")
        assert twin.usage().inodes == 0
    with loaded(saved(sandbox)) as copy:
        assert shell_of(copy).run("ls; cd /; exec 7<&-; echo left").stdout == "left\n"
        assert copy.usage().inodes == 0


def test_a_sandbox_goes_through_a_pipe(sandbox: Sandbox) -> None:
    sandbox.python().run("x = list(range(100_000))")
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as source, os.fdopen(write_end, "wb") as target:

        def send() -> None:
            sandbox.save(target)
            target.close()

        sender = threading.Thread(target=send)
        sender.start()
        with Sandbox.load(source) as copy:
            sender.join()
            assert python_of(copy).run("sum(x)").value == 4_999_950_000


def test_a_snapshot_is_saved_and_restored(sandbox: Sandbox, tmp_path: Path) -> None:
    session = sandbox.python()
    session.run("x = 1")
    sandbox.snapshot("one").save(tmp_path / "one.wsand")
    session.run("x = 2")
    snapshot = Snapshot.load(tmp_path / "one.wsand")
    assert (snapshot.name, snapshot.sessions) == ("one", ["python"])
    sandbox.restore(snapshot)
    assert session.run("x").value == 1
    with Sandbox.from_snapshot(snapshot) as other, Sandbox.from_snapshot(snapshot) as another:
        python_of(other).run("x = 3")
        assert python_of(another).run("x").value == 1


def test_a_loaded_sandbox_can_be_forked_snapshotted_and_saved_again(sandbox: Sandbox) -> None:
    sandbox.python().run("x = [1]")
    sandbox.shell().run("f() { echo $((n += 1)); }")
    with loaded(saved(sandbox)) as copy:
        before = copy.snapshot()
        assert shell_of(copy, 1).run("f; f").stdout == "1\n2\n"
        python_of(copy).run("x.append(2)")
        with copy.fork() as twin, loaded(saved(copy)) as again:
            for each in (twin, again):
                assert shell_of(each, 1).run("f").stdout == "3\n"
                assert python_of(each).run("x").value == [1, 2]
        copy.restore(before)
        assert shell_of(copy, 1).run("f").stdout == "1\n"


def test_only_differences_are_written(sandbox: Sandbox) -> None:
    empty = len(saved(sandbox))
    assert empty < 10_000
    sandbox.python()
    assert len(saved(sandbox)) < 4_000_000


def test_what_runs_is_refused_or_left_out(sandbox: Sandbox, tmp_path: Path) -> None:
    target = tmp_path / "m.wsand"
    with sandbox.commands.start("sleep 100"):
        with pytest.raises(StateError, match=r"a command runs \(pid \d+: .*sleep 100"):
            sandbox.save(target)
        assert list(tmp_path.iterdir()) == []
        sandbox.save(target, running="drop")
    with Sandbox.load(target) as copy:
        assert copy.commands.list() == []


def test_secrets_and_rules_of_the_network_are_not_saved() -> None:
    pytest.importorskip("cryptography", reason="needs the extra `network`")
    network = Network(
        allow=["allowed.example"], secrets={"allowed.example": {"Authorization": "top-secret-7"}}
    )
    with Sandbox(network=network) as sandbox:
        content = saved(sandbox)
    assert b"top-secret-7" not in unpacked(content)
    assert b"allowed.example" not in unpacked(content)
    with loaded(content) as copy:
        assert copy.network.rules().allow == ()
    with loaded(content, SandboxOptions(network=network)) as copy:
        assert copy.network.rules().allow == ("allowed.example",)


def test_limits_above_the_default_ones_have_to_be_granted(tmp_path: Path) -> None:
    with Sandbox(memory_limit_bytes=2 << 30, max_processes=5) as sandbox:
        sandbox.save(tmp_path / "m.wsand")
    with pytest.raises(StateLimitError, match=r"SandboxOptions\(memory_limit_bytes=2147483648\)"):
        Sandbox.load(tmp_path / "m.wsand")
    granted = SandboxOptions(memory_limit_bytes=2 << 30)
    with Sandbox.load(tmp_path / "m.wsand", options=granted) as copy:
        assert copy.usage().memory_limit_bytes == 2 << 30
        assert copy.usage().max_processes == SandboxOptions().max_processes


def test_what_does_not_fit_is_refused(sandbox: Sandbox) -> None:
    sandbox.files.write("large", bytes(8 << 20))
    with pytest.raises(StateLimitError, match="ENOSPC"):
        loaded(saved(sandbox), SandboxOptions(fs_limit_bytes=1 << 20))
    sandbox.files.rm("large")
    sandbox.python().run("x = bytearray(range(256)) * 400_000")
    content = saved(sandbox)
    with pytest.raises(StateLimitError, match="raise memory_limit_bytes"):
        loaded(content, SandboxOptions(memory_limit_bytes=80 << 20))
    with loaded(content, SandboxOptions(memory_limit_bytes=400 << 20)) as copy:
        assert python_of(copy).run("len(x)").value == 102_400_000


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"x", b"PK\3\4" * 100, bytes(5000), MAGIC[:5] + b"???" + bytes(100)):
        (tmp_path / "m.wsand").write_bytes(content)
        with pytest.raises(StateFileError, match="not a saved sandbox"):
            Sandbox.load(tmp_path / "m.wsand")
    with pytest.raises(StateError, match=r"cannot load .*: No such file"):
        Sandbox.load(tmp_path / "missing")
    with pytest.raises(StateError, match=r"cannot load .*: Is a directory"):
        Sandbox.load(tmp_path)
    with pytest.raises(TypeError, match="a path or a binary stream"):
        Sandbox.load(7)  # type: ignore[arg-type]


def test_a_newer_version_is_refused(sandbox: Sandbox) -> None:
    content = bytearray(saved(sandbox))
    content[len(MAGIC)] += 1
    with pytest.raises(StateVersionError, match="install a newer wasmsand"):
        loaded(bytes(content))


def test_a_directory_that_cannot_be_written_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot save to .*missing.*: No such file or directory"):
        sandbox.save(tmp_path / "missing" / "m.wsand")
    (tmp_path / "d").mkdir()
    with pytest.raises(StateError, match=r"cannot save to .*/d: Is a directory"):
        sandbox.save(tmp_path / "d")
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "m.wsand"
    program = """
        import resource, sys
        from wasmsand import Sandbox, StateError
        with Sandbox() as sandbox:
            sandbox.files.write("f", "first")
            sandbox.save(sys.argv[1])
            sandbox.commands.run("head -c 5000000 /dev/urandom > f")
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
            try:
                sandbox.save(sys.argv[1])
            except StateError as error:
                print(error)
            resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
            print(len(sandbox.files.read("f")))
    """
    output = in_another_process(program, str(target))
    assert output == f"cannot save to {target}: File too large\n5000000\n"
    assert [path.name for path in tmp_path.iterdir()] == ["m.wsand"]
    with Sandbox.load(target) as copy:
        assert copy.files.read_text("f") == "first"


def test_files_alone_can_be_loaded_onto_another_image(sandbox: Sandbox) -> None:
    sandbox.files.write("f", "kept")
    sandbox.env.set("A", "1")
    sandbox.python()
    with Sandbox.load(io.BytesIO(saved(sandbox)), only_files=True) as copy:
        assert copy.sessions == []
        assert copy.commands.run("cat f; echo $A").stdout == "kept1\n"


def test_mounts_are_made_again_by_whoever_loads(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("of the host")
    with Sandbox(mounts={"/mnt/data": str(tmp_path)}) as sandbox:
        assert sandbox.commands.run("cat /mnt/data/f").stdout == "of the host"
        content = saved(sandbox)
    assert str(tmp_path).encode() not in unpacked(content)
    with loaded(content) as copy:
        assert copy.commands.run("ls /mnt/data").stdout == ""
    with loaded(content, SandboxOptions(mounts={"/mnt/data": str(tmp_path)})) as copy:  # type: ignore[dict-item] # a path is enough
        assert copy.commands.run("cat /mnt/data/f").stdout == "of the host"


def test_saving_and_loading_leave_no_descriptors_and_no_threads(sandbox: Sandbox) -> None:
    sandbox.python()
    sandbox.shell()
    loaded(saved(sandbox)).kill()

    def held() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    before = held()
    for _ in range(5):
        loaded(saved(sandbox)).kill()
    wait_until(lambda: held() <= before, f"{held()} descriptors and threads, {before} before")
