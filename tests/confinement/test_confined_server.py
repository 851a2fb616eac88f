"""What a confined process can still do, tried from inside, and that the server is confined."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from wasmsand.confinement import landlock, seccomp, system_calls
from wasmsand.engine.wasmtime.compile_cache import default_directory

linux = pytest.mark.skipif(
    not system_calls.numbers_are_known(), reason="only Linux has barriers besides resource limits"
)
with_landlock = pytest.mark.skipif(
    landlock.version() == 0, reason="the running kernel has no landlock"
)
with_tcp_rules = pytest.mark.skipif(
    landlock.version() < 4, reason="the landlock of the running kernel does not cover networks"
)
with_scopes = pytest.mark.skipif(
    landlock.version() < 6, reason="the landlock of the running kernel does not cover signals"
)

PRELUDE = """\
import errno, os, resource, signal, socket, subprocess, sys, tempfile
from wasmsand.cli.confining import confine_server
barriers = confine_server([{readable}], os.getppid())

def attempt(act, *arguments):
    "The name of the error that it meets, or `done`."
    try:
        act(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return "done"
"""


def inside(script: str, *readable: Path, cache: Path | None = None) -> str:
    """Run a script in a confined process; returns what it printed."""
    paths = ", ".join(repr(str(path)) for path in readable)
    environ = dict(os.environ)
    if cache is not None:
        environ["WASMSAND_CACHE"] = str(cache)
    ended = subprocess.run(
        [sys.executable, "-c", PRELUDE.format(readable=paths) + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environ,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_resource_limits_are_lowered() -> None:
    output = inside(
        """
        from wasmsand.confinement import limit_memory
        most = limit_memory(guests=1 << 30, files=1 << 28, output=1 << 26, processes=64)
        assert resource.getrlimit(resource.RLIMIT_DATA)[1] == most
        for name in ("CORE", "NOFILE", "FSIZE"):
            print(name, *resource.getrlimit(getattr(resource, "RLIMIT_" + name)))
        """
    )
    assert output == f"CORE 0 0\nNOFILE 1024 1024\nFSIZE {1 << 30} {1 << 30}\n"


def test_memory_beyond_the_limit_is_refused() -> None:
    output = inside(
        """
        from wasmsand.confinement import limit_memory
        limit_memory(guests=1 << 20, files=1 << 20, output=1 << 20, processes=1)
        try:
            kept = [bytearray(1 << 28) for _ in range(64)]
        except MemoryError:
            print("MemoryError")
        """
    )
    assert output == "MemoryError\n"


@linux
def test_the_barriers_in_force_are_reported() -> None:
    output = inside("print(*barriers.names, sep='\\n')").splitlines()
    assert output[:3] == ["resource limits", "ends with its parent", "no new privileges"]
    assert ("landlock: files" in output) == (landlock.version() > 0)
    assert ("landlock: TCP" in output) == (landlock.version() >= 4)
    assert "seccomp" in output


@with_landlock
def test_no_file_of_the_user_can_be_read_or_written(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    os.chmod(secret, 0o666)
    new = str(tmp_path / "new")
    output = inside(
        f"""
        for path in ("/etc/passwd", "/etc/shadow", {str(secret)!r}, "/root/.bashrc",
                     f"/proc/{{os.getppid()}}/environ", f"/proc/{{os.getppid()}}/mem"):
            if os.path.exists(path):
                assert attempt(open, path) == "EACCES", path
        print(attempt(os.listdir, "/"), attempt(os.listdir, {str(tmp_path)!r}))
        print(attempt(open, {str(secret)!r}, "w"), attempt(open, {new!r}, "w"))
        print(attempt(os.unlink, {str(secret)!r}), attempt(os.mkdir, {new!r}))
        print(attempt(os.rename, {str(secret)!r}, {new!r}))
        print(attempt(os.link, sys.executable, {new!r}))
        print(attempt(os.symlink, "/etc/passwd", {str(tmp_path / "link")!r}))
        print(attempt(os.truncate, {str(secret)!r}, 0))
        """
    )
    assert set(output.split()) == {"EACCES"}
    assert secret.read_text() == "secret"
    assert not Path("/tmp/new").exists()


@with_landlock
def test_compiled_modules_can_be_read_and_never_written(tmp_path: Path) -> None:
    """Other processes run their code."""
    modules = tmp_path / "modules"
    modules.mkdir(mode=0o700)
    for compiled in default_directory().glob("*.cwasm"):  # so that this test compiles none
        (modules / compiled.name).symlink_to(compiled)
    (modules / "entry.cwasm").write_bytes(b"code")
    before = {path.name for path in modules.iterdir()}
    output = inside(
        f"""
        modules = {str(modules)!r}
        assert open(modules + "/entry.cwasm", "rb").read() == b"code"
        for act in (lambda: open(modules + "/entry.cwasm", "r+b"),
                    lambda: open(modules + "/new.cwasm", "wb"),
                    lambda: open(modules + "/unnamed/new.cwasm", "wb"),
                    lambda: os.unlink(modules + "/entry.cwasm"),
                    lambda: os.rename(modules + "/unnamed", modules + "/other")):
            print(attempt(act))
        file = os.open(modules + "/unnamed", os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(file, b"an image of memory")
        fds = os.open("/proc/self/fd", os.O_RDONLY)
        print(attempt(lambda: os.link(str(file), modules + "/unnamed/named", src_dir_fd=fds)))
        """,
        cache=tmp_path,
    )
    assert set(output.split()) == {"EACCES"}
    assert {path.name for path in modules.rglob("*")} == before | {"unnamed"}


@with_landlock
def test_granted_files_can_be_read_but_not_written(tmp_path: Path) -> None:
    (tmp_path / "tool.wasm").write_bytes(b"tool")
    output = inside(
        f"""
        path = {str(tmp_path / "tool.wasm")!r}
        print(open(path).read(), attempt(open, path, "w"), os.listdir({str(tmp_path)!r}))
        """,
        tmp_path,
    )
    assert output == "tool EACCES ['tool.wasm']\n"


@with_landlock
def test_nothing_but_python_can_be_executed() -> None:
    output = inside(
        """
        for program in ("/bin/sh", "/usr/bin/env", "/bin/true"):
            print(attempt(subprocess.run, [program]))
        child = subprocess.run([sys.executable, "-S", "-c", "open('/etc/passwd')"],
                               stderr=subprocess.PIPE, text=True)
        print(child.stderr.splitlines()[-1].split(":")[0])  # confined as well
        """
    )
    assert output == "EACCES\n" * 3 + "PermissionError\n"


@linux
def test_the_network_is_out_of_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        output = inside(
            f"""
            for family, kind in ((socket.AF_INET, socket.SOCK_STREAM),
                                 (socket.AF_INET, socket.SOCK_DGRAM),
                                 (socket.AF_INET6, socket.SOCK_STREAM),
                                 (socket.AF_UNIX, socket.SOCK_STREAM)):
                print(attempt(socket.socket, family, kind))
            print(attempt(socket.create_connection, ("127.0.0.1", {port})))
            """
        )
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
    assert output == "EPERM\n" * 5


@with_tcp_rules
def test_tcp_is_denied_by_landlock_as_well() -> None:
    """Even with a socket that was made before the confinement."""
    script = """
        import os, socket, sys
        made = socket.socket()
        from wasmsand.confinement import landlock, system_calls
        system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)
        landlock.restrict([("/", landlock.READ_FILE | landlock.READ_DIR)])
        for act in (lambda: made.bind(("127.0.0.1", 0)), lambda: made.connect(("127.0.0.1", 9))):
            try:
                act()
                print("done")
            except OSError as error:
                print(error.errno)
        """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "13\n13\n"


@with_scopes
def test_no_other_process_can_be_signalled_or_inspected() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        output = inside(
            f"""
            print(attempt(os.kill, {other.pid}, signal.SIGKILL))
            print(attempt(os.kill, os.getppid(), signal.SIGKILL))
            print(attempt(open, "/proc/{other.pid}/maps"))
            os.kill(os.getpid(), 0)
            """
        )
        assert other.poll() is None
        other.communicate(b"\n")
    assert output == "EPERM\nEPERM\nEACCES\n"


@linux
def test_dangerous_system_calls_are_denied() -> None:
    output = inside(
        """
        import ctypes
        from wasmsand.confinement import seccomp
        libc = ctypes.CDLL(None, use_errno=True)
        column = seccomp._Numbers._fields.index(os.uname().machine)
        for name, row in seccomp.DENIED.items():
            if row[column] is not None:
                assert libc.syscall(row[column], -1, -1, -1, -1, -1, -1) == -1, name
                assert ctypes.get_errno() == errno.EPERM, (name, ctypes.get_errno())
        assert libc.syscall(seccomp._CLONE[column], 0x10000000, 0, 0, 0, 0) == -1  # a name space
        assert ctypes.get_errno() == errno.EPERM
        assert libc.syscall(seccomp._CLONE3, 0, 0) == -1
        assert ctypes.get_errno() == errno.ENOSYS
        import threading
        thread = threading.Thread(target=print, args=("threads start",))
        thread.start()
        thread.join()
        """
    )
    assert output == "threads start\n"


def test_the_filter_has_a_row_for_each_machine() -> None:
    for machine in system_calls.MACHINES:
        for network in (False, True):
            program = seccomp.filter_program(machine, network=network)
            assert len(program) % 8 == 0
            assert len(program) // 8 < 256  # jumps are of one byte


def test_barriers_need_a_process_of_one_thread() -> None:
    script = """
        import threading, time
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        from wasmsand.confinement import Policy, confine
        try:
            confine(Policy())
        except RuntimeError as error:
            print("confine before they start" in str(error))
        """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "True\n"


@linux
def test_a_process_whose_parent_has_ended_does_not_start() -> None:
    command = [sys.executable, "-m", "wasmsand", "rpc", "--confine", "--parent", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, input="", check=False)
    assert ended.returncode == 125
    assert "the process that started this one has ended" in ended.stderr


@linux
def test_a_process_with_a_network_may_connect_and_nothing_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        script = f"""
        import errno, os, socket
        from wasmsand.cli.confining import confine_server
        barriers = confine_server([], os.getppid(), network=True)
        def attempt(act, *arguments):
            try:
                act(*arguments)
            except OSError as error:
                return errno.errorcode.get(error.errno, str(error))
            return "done"
        print(attempt(socket.create_connection, ("127.0.0.1", {port})))
        print(attempt(socket.socket, socket.AF_INET6, socket.SOCK_STREAM))
        print(attempt(socket.socket, socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK))
        print(attempt(socket.socket, socket.AF_UNIX, socket.SOCK_STREAM))
        print(attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1))
        print(attempt(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW))
        print(attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW))
        print(attempt(socket.socket().bind, ("127.0.0.1", 0)))
        print(attempt(socket.socket().listen))
        print(attempt(open, "/etc/passwd") if {landlock.version() > 0} else "EACCES")
        print(socket.getaddrinfo("localhost", 80, proto=6)[0][4][1])
        """
        ended = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["done"] * 3 + ["EPERM"] * 6 + ["EACCES", "80"]
