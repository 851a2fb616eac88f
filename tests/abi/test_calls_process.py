"""Processes: start-up, exec, vfork, exit, wait, groups, names, priorities."""

from __future__ import annotations

import pytest

from tests.abi.caller import AT_FDCWD, WASM, Caller, Sandbox
from wasmsand.abi.context import ProcessEnded
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import (
    AT_EMPTY_PATH,
    O_CLOEXEC,
    O_CREAT,
    O_RDONLY,
    O_RDWR,
    WCONTINUED,
    WEXITED,
    WNOHANG,
    WNOWAIT,
    WUNTRACED,
)
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.resting import rest_of
from wasmsand.kernel.process.signals import Signal

P_ALL, P_PID, P_PGID = range(3)
VFORK = 0x4111
ANY = -1


def wait(caller: Caller, pid: int = ANY, options: int = 0) -> tuple[int, int]:
    """(pid, status) of wait4."""
    address = caller.room(4)
    return caller.ok("wait4", pid, address, options, 0), caller.unpack("I", address)[0]


@pytest.mark.syscalls("startup_size", "startup_fill")
def test_a_program_learns_its_arguments_and_environment(sandbox: Sandbox) -> None:
    caller = sandbox.process(argv=(b"prog", b"", b"arg"))
    size = caller.ok("startup_size")
    address = caller.room(size, 0xAA)
    caller.ok("startup_fill", address, size)
    assert caller.get(address, size) == b"\3\0\0\0\1\0\0\0prog\0\0arg\0HOME=/tmp\0"
    assert caller.errno("startup_fill", address, size - 1) is Errno.ERANGE
    assert caller.errno("startup_fill", len(caller.space) - size + 1, size) is Errno.EFAULT


@pytest.mark.syscalls("checkpoint")
def test_only_the_maker_of_an_image_can_store_a_process(caller: Caller) -> None:
    assert caller.ok("checkpoint", 0) == 0
    assert caller.errno("checkpoint", 1) is Errno.ENOSYS
    assert caller.errno("checkpoint", 3) is Errno.EINVAL
    stored: list[bytes] = []
    caller.kernel.checkpoint_reached = lambda process, instance: stored.append(
        instance.read(0, instance.memory_size())
    )
    assert caller.ok("checkpoint", 0) == 1
    with pytest.raises(ProcessEnded):
        caller.call("checkpoint", 1)
    assert stored == [bytes(caller.space)]


@pytest.mark.syscalls("checkpoint")
def test_a_program_rests_until_a_descriptor_can_be_read(sandbox: Sandbox, caller: Caller) -> None:
    fds = caller.room(8)
    caller.ok("pipe2", fds, 0)
    read, write = caller.unpack("II", fds)
    assert caller.errno("checkpoint", 2, 99) is Errno.EBADF
    assert caller.errno("checkpoint", 2, write) is Errno.EBADF
    resting = caller.begin("checkpoint", 2, read)
    assert resting.is_blocked()
    with sandbox.lock:
        assert rest_of(caller.process.first_thread) is not None
        caller.process.fds.get(write).write(b"x")
    assert resting.result() == 0
    assert rest_of(caller.process.first_thread) is None
    assert caller.ok("checkpoint", 2, read) == 0  # nothing was read
    caller.ok("read", read, caller.room(1), 1)
    caller.ok("close", write)
    assert caller.ok("checkpoint", 2, read) == 0  # the end can be read too


@pytest.mark.syscalls("execve")
def test_exec_replaces_the_program_and_keeps_the_process(caller: Caller) -> None:
    caller.open(b"kept", O_RDWR | O_CREAT)
    caller.open(b"closed", O_RDWR | O_CREAT | O_CLOEXEC)
    caller.handle(Signal.SIGUSR1)
    pid, old = caller.process.pid, caller.space
    caller.ok("execve", b"/bin/prog", caller.strings(b"a", b"b"), caller.strings(b"E=1"))
    assert caller.space is not old
    assert (caller.process.pid, list(caller.process.fds)) == (pid, [0])
    assert (caller.process.argv, caller.process.environ) == ((b"a", b"b"), (b"E=1",))
    assert caller.process.name == b"prog"
    assert caller.process.signals.action(Signal.SIGUSR1).handler == 0


@pytest.mark.syscalls("execve")
def test_a_failed_exec_changes_nothing(caller: Caller) -> None:
    caller.make_file(b"script", b"#!/missing\n", 0o755)
    caller.make_file(b"broken", WASM + b"!", 0o755)
    caller.make_file(b"plain", WASM, 0o644)
    caller.open(b"f", O_RDWR | O_CREAT | O_CLOEXEC)
    argv = caller.strings(b"x")
    for path, errno in (
        (b"missing", Errno.ENOENT),
        (b"script", Errno.ENOENT),
        (b"broken", Errno.ENOEXEC),
        (b"plain", Errno.EACCES),
    ):
        assert caller.errno("execve", path, argv, 0) is errno
    bad_pointer = caller.pack("II", 0xFFFF_FFFF, 0)
    assert caller.errno("execve", b"/bin/prog", bad_pointer, 0) is Errno.EFAULT
    assert caller.errno("execve", b"/bin/prog", len(caller.space) - 3, 0) is Errno.EFAULT
    assert len(caller.process.fds) == 1
    assert caller.process.argv == (b"test",)


def test_endless_argument_lists_are_bounded(caller: Caller) -> None:
    address = caller.string(b"x" * 1000)
    pointers = caller.put(address.to_bytes(4, "little") * 100_000)
    assert caller.errno("execve", b"/bin/prog", pointers, 0) is Errno.E2BIG
    long = caller.strings(b"x" * 131_072)
    assert caller.errno("execve", b"/bin/prog", long, 0) is Errno.E2BIG


@pytest.mark.syscalls("execveat")
def test_exec_by_directory_or_by_fd(caller: Caller) -> None:
    directory = caller.open(b"/usr/bin", O_RDONLY)
    caller.ok("execveat", directory, b"prog", caller.strings(b"1"), 0, 0)
    assert caller.process.argv == (b"1",)
    fd = caller.open(b"/usr/bin/prog", O_RDONLY)
    caller.ok("execveat", fd, b"", caller.strings(b"2"), 0, AT_EMPTY_PATH)
    assert caller.process.argv == (b"2",)
    assert caller.errno("execveat", AT_FDCWD, b"", 0, 0, 0) is Errno.ENOENT
    assert caller.errno("execveat", 99, b"prog", 0, 0, 0) is Errno.EBADF
    assert caller.errno("execveat", AT_FDCWD, b"prog", 0, 0, 1) is Errno.EINVAL


@pytest.mark.syscalls("exit_group", "exit", "wait4")
@pytest.mark.parametrize("name", ["exit", "exit_group"])
def test_exit_codes_have_eight_bits(caller: Caller, name: str) -> None:
    for covered in ("exit", "exit_group"):
        child = caller.fork()
        with pytest.raises(ProcessEnded):
            child.call(covered, 0x1234)
        assert wait(caller) == (child.process.pid, 0x3400)
    with pytest.raises(ProcessEnded):
        child.call("getpid")


@pytest.mark.syscalls("wait4")
def test_wait_blocks_until_a_child_ends(caller: Caller) -> None:
    child = caller.fork()
    assert caller.ok("wait4", ANY, 0, WNOHANG, 0) == 0
    usage = caller.room(72, 0xAA)
    waiting = caller.begin("wait4", child.process.pid, 0, 0, usage)
    assert waiting.is_blocked()
    child.exit(1)
    assert waiting.result() == child.process.pid
    assert caller.unpack("18i", usage)[5:] == (0,) * 13
    assert caller.errno("wait4", ANY, 0, 0, 0) is Errno.ECHILD
    assert caller.errno("wait4", ANY, 0, 4, 0) is Errno.EINVAL
    assert caller.errno("wait4", 0x8000_0000, 0, 0, 0) is Errno.ESRCH


def test_a_wait_with_a_bad_pointer_loses_no_child(caller: Caller) -> None:
    child = caller.fork()
    child.exit(1)
    end = len(caller.space)
    assert caller.errno("wait4", ANY, end - 3, 0, 0) is Errno.EFAULT
    assert caller.errno("wait4", ANY, 0, 0, end - 71) is Errno.EFAULT
    assert caller.errno("waitid", P_ALL, 0, end - 127, WEXITED, 0) is Errno.EFAULT
    assert wait(caller) == (child.process.pid, 0x100)


@pytest.mark.syscalls("waitid")
def test_waitid_reports_the_change_of_state_in_siginfo(caller: Caller) -> None:
    child = caller.fork()
    pid = child.process.pid
    info = caller.room(128, 0xAA)
    assert caller.ok("waitid", P_ALL, 0, info, WEXITED | WNOHANG, 0) == 0
    assert caller.get(info, 128) == bytes(128)
    caller.ok("kill", pid, Signal.SIGSTOP)
    caller.ok("waitid", P_PID, pid, info, WUNTRACED, 0)
    assert caller.unpack("6i", info) == (17, 0, 5, pid, 1000, Signal.SIGSTOP)
    caller.ok("kill", pid, Signal.SIGCONT)
    caller.ok("waitid", P_PGID, 0, info, WCONTINUED, 0)
    assert caller.unpack("6i", info) == (17, 0, 6, pid, 1000, Signal.SIGCONT)
    child.exit(7)
    for options in (WEXITED | WNOWAIT, WEXITED):
        caller.ok("waitid", P_PID, pid, info, options, 0)
        assert caller.unpack("6i", info) == (17, 0, 1, pid, 1000, 7)
    assert caller.errno("waitid", P_ALL, 0, info, WEXITED, 0) is Errno.ECHILD
    for kind, number, options in ((9, 0, WEXITED), (P_PID, 0, WEXITED), (P_ALL, 0, 0),
                                  (P_ALL, 0, 1 << 20), (P_PGID, -1, WEXITED)):  # fmt: skip
        assert caller.errno("waitid", kind, number, info, options, 0) is Errno.EINVAL


# vfork.


@pytest.mark.syscalls("clone")
def test_a_vfork_child_acts_in_its_parents_place_until_it_exits(caller: Caller) -> None:
    pid = caller.process.pid
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    assert caller.ok("clone", VFORK) == 0
    child_pid = caller.ok("getpid")
    assert child_pid != pid
    assert caller.ok("getppid") == pid
    caller.ok("close", fd)
    caller.ok("chdir", b"/")
    caller.handle(Signal.SIGUSR1)
    assert caller.ok("exit_group", 9) == child_pid
    assert caller.ok("getpid") == pid
    caller.write(fd, b"still open")
    assert caller.process.signals.action(Signal.SIGUSR1).handler == 0
    assert wait(caller) == (child_pid, 0x900)


@pytest.mark.syscalls("clone", "execve")
def test_a_vfork_child_that_execs_is_a_process_of_its_own(caller: Caller) -> None:
    caller.ok("clone", VFORK)
    child_pid = caller.ok("getpid")
    assert caller.errno("execve", b"missing", 0, 0) is Errno.ENOENT
    assert caller.ok("getpid") == child_pid, "still the child after a failed exec"
    assert caller.ok("execve", b"/bin/prog", caller.strings(b"prog"), 0) == child_pid
    assert wait(caller) == (child_pid, 0)


@pytest.mark.syscalls("clone")
def test_unsupported_clone_flags_are_refused(caller: Caller) -> None:
    assert caller.errno("clone", 17) is Errno.ENOSYS
    assert caller.errno("clone", 0x100) is Errno.ENOSYS
    caller.ok("clone", VFORK)
    assert caller.errno("clone", VFORK) is Errno.EAGAIN
    caller.ok("exit_group", 0)


def test_a_killed_vfork_child_gives_its_parent_back(caller: Caller) -> None:
    other = caller.fork()
    caller.ok("clone", VFORK)
    child_pid = caller.ok("getpid")
    other.ok("kill", child_pid, Signal.SIGKILL)
    assert caller.errno("getpid") is Errno.EINTR
    caller.driver.tick()
    assert caller.ok("exit_group", 0) == child_pid
    assert wait(caller, child_pid) == (child_pid, Signal.SIGKILL)


def test_a_vfork_child_that_kills_itself_gives_its_parent_back(caller: Caller) -> None:
    caller.ok("clone", VFORK)
    child_pid = caller.ok("getpid")
    assert caller.ok("kill", child_pid, Signal.SIGTERM) == child_pid
    assert wait(caller) == (child_pid, Signal.SIGTERM)


def test_a_vfork_child_whose_parent_was_killed_too_ends(caller: Caller, sandbox: Sandbox) -> None:
    caller.ok("clone", VFORK)
    with sandbox.lock:
        sandbox.kernel.kill_all()
    with pytest.raises(ProcessEnded):
        caller.call("getpid")
    with pytest.raises(ProcessEnded):
        caller.driver.tick()


def test_a_trap_in_a_vfork_child_ends_both(caller: Caller) -> None:
    parent = caller.process
    caller.ok("clone", VFORK)
    child = caller.process
    caller.guest.finish(Signal.SIGSEGV)
    assert (parent.exit_status, child.exit_status) == (Signal.SIGSEGV, Signal.SIGSEGV)


def test_processes_are_limited_for_vfork_too() -> None:
    sandbox = Sandbox(Limits(max_processes=2))
    caller = sandbox.process()
    caller.ok("clone", VFORK)
    caller.ok("exit_group", 0)
    assert caller.errno("clone", VFORK) is Errno.EAGAIN, "a zombie counts"
    assert caller.driver.fork_allowed() == -Errno.EAGAIN
    assert caller.ok("getpid") == caller.process.pid
    wait(caller)
    caller.ok("clone", VFORK)


# Groups, names and priorities.


@pytest.mark.syscalls("getpid", "getppid", "setpgid", "getpgid", "setsid", "getsid")
def test_groups_and_sessions(caller: Caller) -> None:
    pid = caller.ok("getpid")
    child = caller.fork()
    child_pid = child.ok("getpid")
    assert child.ok("getppid") == pid
    assert child.ok("getpgid", 0) == caller.ok("getpgid", child_pid) == pid
    caller.ok("setpgid", child_pid, child_pid)
    assert child.ok("getpgid", 0) == child_pid
    assert child.errno("setsid") is Errno.EPERM
    grandchild = child.fork()
    assert grandchild.ok("setsid") == grandchild.ok("getpid")
    assert caller.ok("getsid", grandchild.ok("getpid")) == grandchild.process.pid
    assert caller.ok("getsid", 0) == pid
    assert caller.errno("setpgid", child_pid, -1) is Errno.EINVAL
    assert caller.errno("setpgid", -1, 0) is Errno.ESRCH
    for name in ("getpgid", "getsid"):
        assert caller.errno(name, 9999) is Errno.ESRCH
        assert caller.errno(name, -5) is Errno.ESRCH
    child.exit()
    assert grandchild.ok("getppid") == 1


@pytest.mark.syscalls("prctl")
def test_names(caller: Caller) -> None:
    caller.ok("prctl", 15, b"a name that is far too long")
    address = caller.room(16, 0xAA)
    caller.ok("prctl", 16, address)
    assert caller.get(address, 16) == b"a name that is \0"
    assert caller.errno("prctl", 9999, 0) is Errno.EINVAL
    assert caller.errno("prctl", 16, len(caller.space) - 15) is Errno.EFAULT


@pytest.mark.syscalls("getpriority", "setpriority")
def test_priorities_are_kept_and_only_root_lowers_them(caller: Caller, root: Caller) -> None:
    assert caller.ok("getpriority", 0, 0) == 20
    caller.ok("setpriority", 0, 0, 5)
    assert caller.ok("getpriority", 0, caller.process.pid) == 15
    caller.ok("setpriority", 0, 0, 100)
    assert caller.ok("getpriority", 0, 0) == 1
    assert caller.errno("setpriority", 0, 0, 0) is Errno.EACCES
    assert caller.errno("setpriority", 0, 1, 19) is Errno.EPERM
    assert caller.errno("setpriority", 3, 0, 0) is Errno.EINVAL
    assert caller.errno("getpriority", 3, 0) is Errno.EINVAL
    assert caller.errno("getpriority", 0, 9999) is Errno.ESRCH
    root.ok("setpriority", 0, caller.process.pid, -30)
    assert caller.ok("getpriority", 0, 0) == 40


@pytest.mark.syscalls("sched_getaffinity", "sched_yield", "getcpu")
def test_processors(caller: Caller) -> None:
    address = caller.room(128)
    assert caller.ok("sched_getaffinity", 0, 128, address) == 4
    assert caller.unpack("I", address)[0].bit_count() == 2
    assert caller.errno("sched_getaffinity", 0, 3, address) is Errno.EINVAL
    assert caller.errno("sched_getaffinity", 9999, 128, address) is Errno.ESRCH
    caller.ok("sched_yield")
    cpu, node = caller.room(4, 0xAA), caller.room(4, 0xAA)
    caller.ok("getcpu", cpu, node)
    caller.ok("getcpu", 0, 0)
    assert (caller.unpack("I", cpu), caller.unpack("I", node)) == ((0,), (0,))


def test_a_set_user_id_program_runs_as_its_owner(caller: Caller, root: Caller) -> None:
    program = root.make_file(b"/usr/bin/owner", b"\0asm\1\0\0\0", 0o755)
    root.ok("fchmodat", -100, program, 0o4755)
    child = caller.fork()
    child.call("execve", program, child.strings(b"owner"), child.strings())
    assert child.process.identity.euid == 0
    assert child.process.identity.uid == 1000
