"""What execve starts: lookup, interpreters, sizes, refusals (expectations from Linux)."""

from __future__ import annotations

import pytest

from tests.kernel.system import System, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import O_CREAT, O_RDWR
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.program import Program, become, find_program, require_arguments
from wasmsand.kernel.process.signals import SIG_IGN, Signal, SignalAction
from wasmsand.kernel.vfs import ROOT

WASM = b"\0asm\1\0\0\0"


@pytest.fixture(autouse=True)
def _programs(system: System) -> None:
    system.make_file(b"/tmp/prog", WASM, 0o755)


def find(
    system: System,
    process: Process,
    path: bytes,
    argv: tuple[bytes, ...] = (b"zero", b"one"),
    environ: tuple[bytes, ...] = (),
) -> Program:
    require_arguments(system.kernel, argv, environ)
    return find_program(system.kernel, process, process.cwd, path, argv, environ)


def script(system: System, first_line: bytes, path: bytes = b"/tmp/script") -> bytes:
    system.make_file(path, first_line, 0o755)
    return path


def test_a_program_gets_its_arguments_as_they_are(system: System, process: Process) -> None:
    program = find(system, process, b"/tmp/prog", (b"zero", b"one"), (b"A=1",))
    assert (program.path, program.argv, program.environ) == (
        b"/tmp/prog",
        (b"zero", b"one"),
        (b"A=1",),
    )
    assert program.read(0, program.size) == WASM


def test_a_relative_path_becomes_absolute(system: System, process: Process) -> None:
    assert find(system, process, b"./prog").path == b"/tmp/prog"
    assert find(system, process, b"prog").path == b"/tmp/prog"


def test_an_empty_argv_becomes_one_empty_argument(system: System, process: Process) -> None:
    assert find(system, process, b"/tmp/prog", ()).argv == (b"",)


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        (b"#!/tmp/prog\n", ()),
        (b"#!/tmp/prog", ()),
        (b"#! \t/tmp/prog  a b\t c \t\n", (b"a b\t c",)),
        (b"#!/tmp/prog\0 zz\n", ()),
        (b"#!/tmp/prog a\0b\n", (b"a",)),
        (b"#!/tmp/prog q", (b"q",)),
        (b"#!/tmp/prog " + b"x" * 300 + b"\n", (b"x" * 243,)),
        (b"#!" + b"/" * 245 + b"tmp/prog\n", ()),
        (b"#!" + b"/" * 245 + b"tmp/prog", ()),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_interpreter_gets_its_argument_the_script_and_the_rest(
    system: System, process: Process, line: bytes, arguments: tuple[bytes, ...]
) -> None:
    path = script(system, line)
    program = find(system, process, path)
    assert program.argv[1:] == (*arguments, path, b"one")
    assert program.path.lstrip(b"/") == b"tmp/prog"
    assert program.name == b"script"


@pytest.mark.parametrize(
    ("line", "errno"),
    [
        (b"#!/tmp/prog\r\n", Errno.ENOENT),
        (b"#!/tmp/prog\x0bx\n", Errno.ENOENT),
        (b"#!\n", Errno.ENOEXEC),
        (b"#!  \n", Errno.ENOEXEC),
        (b"#!" + b"/" * 246 + b"tmp/prog\n", Errno.ENOEXEC),
        (b"#!/" + b"x" * 300 + b"\n", Errno.ENOEXEC),
        (b"#!/nonexistent\n", Errno.ENOENT),
        (b"#!/tmp\n", Errno.EACCES),
        (b"", Errno.ENOEXEC),
        (b"echo no interpreter\n", Errno.ENOEXEC),
        (b"\x7fELF\2\1\1", Errno.ENOEXEC),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_file_that_cannot_be_run_says_why(
    system: System, process: Process, line: bytes, errno: Errno
) -> None:
    path = script(system, line)
    assert errno_of(lambda: find(system, process, path)) is errno


def test_five_interpreters_may_stand_before_a_program(system: System, process: Process) -> None:
    paths = [b"/tmp/prog"]
    for number in range(1, 7):
        paths.append(script(system, b"#!%s\n" % paths[-1], b"/tmp/s%d" % number))
    assert find(system, process, paths[5]).argv == (*paths[:6], b"one")
    assert errno_of(lambda: find(system, process, paths[6])) is Errno.ELOOP


def test_a_script_that_is_its_own_interpreter_is_a_loop(system: System, process: Process) -> None:
    path = script(system, b"#!/tmp/script\n")
    assert errno_of(lambda: find(system, process, path)) is Errno.ELOOP


@pytest.mark.parametrize(
    ("path", "errno"),
    [
        (b"/nonexistent", Errno.ENOENT),
        (b"", Errno.ENOENT),
        (b"/tmp", Errno.EACCES),
        (b"/dev/null", Errno.EACCES),
        (b"/etc/passwd", Errno.EACCES),
        (b"/tmp/prog/x", Errno.ENOTDIR),
        (b"/root/prog", Errno.EACCES),
    ],
)
def test_invalid_program_paths_are_refused(
    system: System, process: Process, path: bytes, errno: Errno
) -> None:
    assert errno_of(lambda: find(system, process, path)) is errno


def test_execute_permission_is_needed_even_by_root(system: System, process: Process) -> None:
    namespace = system.kernel.namespace
    node = namespace.resolve(ROOT, namespace.root, b"/tmp/prog")
    namespace.chmod(ROOT, node, 0o666)
    for who in (process, system.command(uid=0)):
        assert errno_of(find, system, who, b"/tmp/prog") is Errno.EACCES
    namespace.chmod(ROOT, node, 0o100)
    find(system, process, b"/tmp/prog")


@pytest.mark.parametrize(
    ("argv", "fits"),
    [
        ((b"x" * 131_071,), True),
        ((b"x" * 131_072,), False),
        ((b"x" * 100_000,) * 20, True),
        ((b"x" * 100_000,) * 21, False),
        ((b"",) * 419_000, True),
        ((b"",) * 420_000, False),
    ],
    ids=["longest", "too long", "much", "too much", "many", "too many"],
)
def test_arguments_and_environment_are_bounded(
    system: System, process: Process, argv: tuple[bytes, ...], fits: bool
) -> None:
    if fits:
        assert find(system, process, b"/tmp/prog", argv).argv == argv
    else:
        assert errno_of(lambda: find(system, process, b"/tmp/prog", argv)) is Errno.E2BIG
        assert errno_of(lambda: find(system, process, b"/tmp/prog", (), argv)) is Errno.E2BIG


def test_becoming_a_program_keeps_what_exec_keeps(system: System, process: Process) -> None:
    system.handle(process, Signal.SIGUSR1)
    process.signals.set_action(Signal.SIGUSR2, SignalAction(SIG_IGN))
    for number in range(2):
        file = system.open(process, b"/tmp/f%d" % number, O_RDWR | O_CREAT)
        process.fds.install(file, close_on_exec=bool(number))
    path = script(system, b"#!/tmp/prog -x\n", b"/tmp/a-script-with-a-long-name")
    pid, cwd = process.pid, process.cwd
    become(system.kernel, process, find(system, process, path, (b"a",), (b"E=1",)))
    assert (process.pid, process.cwd, list(process.fds)) == (pid, cwd, [0])
    assert process.signals.action(Signal.SIGUSR1) == SignalAction()
    assert process.signals.action(Signal.SIGUSR2).handler == SIG_IGN
    assert process.name == b"a-script-with-a"
    assert process.executable == b"/tmp/prog"
    assert process.argv == (b"/tmp/prog", b"-x", path)
    assert process.environ == (b"E=1",)
    assert process.has_execed


def test_a_program_that_is_executed_through_its_own_link_keeps_its_path(
    system: System, process: Process
) -> None:
    become(system.kernel, process, find(system, process, b"/tmp/prog"))
    system.kernel.current = process.first_thread
    system.kernel.namespace.symlink(ROOT, b"/proc/self/exe", process.cwd, b"/tmp/link")
    for _ in range(2):
        program = find(system, process, b"/tmp/link")
        assert program.path == b"/tmp/prog"
        become(system.kernel, process, program)
