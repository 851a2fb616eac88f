"""Processes: start-up, exec, clone, exit, wait, groups, Unix sessions.

Owns the calls of a process's life. Rules: argument strings are bounded before they are copied. fork
is a separate import, because it needs the engine.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from wasmsand.abi.linux import calls_thread
from wasmsand.abi.linux.context import AT_FDCWD_U32, CallContext, signed
from wasmsand.abi.linux.structs import (
    RUSAGE_BYTES,
    SIGINFO_BYTES,
    pack_rusage,
    pack_siginfo,
)
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.process_file import ProcessFile
from wasmsand.kernel.flags import (
    AT_EMPTY_PATH,
    AT_SYMLINK_NOFOLLOW,
    WCONTINUED,
    WEXITED,
    WNOHANG,
    WNOWAIT,
    WUNTRACED,
)
from wasmsand.kernel.limits import (
    ARGUMENT_BYTES_MAX,
    ARGUMENT_STRING_MAX,
    ARGUMENTS_PER_HOLD,
)
from wasmsand.kernel.process import groups
from wasmsand.kernel.process.life import exit_code_and_value, wait
from wasmsand.kernel.process.program import find_program, require_arguments
from wasmsand.kernel.process.resting import rest
from wasmsand.kernel.process.signals import Signal, SignalInfo
from wasmsand.kernel.wait import WouldBlock, Yield

_CLONE_VM: Final = 0x100
_CLONE_VFORK: Final = 0x4000
_CLONE_THREAD: Final = 0x10000
_CHECKPOINT_ASK, _CHECKPOINT_STORE, _CHECKPOINT_REST = range(3)
_COUNTS: Final = Struct("<II")
_P_ALL, _P_PID, _P_PGID, _P_PIDFD = range(4)
_PR_GET_DUMPABLE: Final = 3
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NAME: Final = 15
_PR_GET_NAME: Final = 16
_NAME_BYTES: Final = 16


def _startup_block(context: CallContext) -> bytes:
    process = context.process
    strings = b"\0".join((*process.argv, *process.environ, b""))
    return _COUNTS.pack(len(process.argv), len(process.environ)) + strings


def startup_size(context: CallContext) -> int:
    """The number of bytes that startup_fill writes."""
    return len(_startup_block(context))


def startup_fill(context: CallContext, address: int, size: int) -> int:
    """Write argc, envc and the strings."""
    block = _startup_block(context)
    if len(block) > size:
        raise KernelError(Errno.ERANGE)
    context.memory.write(address, block)
    return 0


def checkpoint(context: CallContext, action: int, descriptor: int) -> int:
    """0: ask whether this start is to be stored. 1: store it; does not return. Only the builder of
    an image stores programs; otherwise the results are 0 and ENOSYS. 2: rest until a descriptor can
    be read: the process may be copied meanwhile, and the copy starts with an empty stack."""
    if action == _CHECKPOINT_REST:
        return rest(context.thread, context.process.fds.get(descriptor))
    if action == _CHECKPOINT_ASK:
        return int(context.kernel.checkpoint_reached is not None)
    if action != _CHECKPOINT_STORE:
        raise KernelError(Errno.EINVAL)
    return context.store()


class _ExecArguments:
    """The strings of argv and envp, read in as many holds of the lock as necessary."""

    __slots__ = ("_left", "_lists", "_places")

    def __init__(self, argv: int, envp: int) -> None:
        self._places = [argv, envp]
        """The address of the next pointer in each array; 0 when the array was read."""
        self._lists: tuple[list[bytes], list[bytes]] = ([], [])
        self._left = ARGUMENT_BYTES_MAX

    def read(self, context: CallContext) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """All strings. Raises `Yield` after ARGUMENTS_PER_HOLD strings; call it again."""
        memory = context.memory
        share = ARGUMENTS_PER_HOLD
        for index, strings in enumerate(self._lists):
            address = self._places[index]
            while address:
                pointer = memory.read_u32(address)
                if not pointer:
                    self._places[index] = 0
                    break
                if not share:
                    self._places[index] = address
                    context.thread.call.progress = self
                    raise Yield
                string = memory.read_string(pointer, ARGUMENT_STRING_MAX, Errno.E2BIG)
                self._left -= len(string) + 5
                if self._left < 0:
                    raise KernelError(Errno.E2BIG)
                strings.append(string)
                address += 4
                share -= 1
        arguments, environment = self._lists
        return tuple(arguments), tuple(environment)


def execve(context: CallContext, path: int, argv: int, envp: int) -> int:
    """execve(2)."""
    return execveat(context, AT_FDCWD_U32, path, argv, envp, 0)


def execveat(
    context: CallContext, directory: int, path: int, argv: int, envp: int, flags: int
) -> int:
    """execveat(2)."""
    if flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW):
        raise KernelError(Errno.EINVAL)
    name = context.memory.read_path(path)
    process, kernel, call = context.process, context.kernel, context.thread.call
    reading = call.progress
    if not isinstance(reading, _ExecArguments):
        reading = _ExecArguments(argv, envp)
    arguments, environment = reading.read(context)
    if not name and flags & AT_EMPTY_PATH:
        name = b"/proc/self/fd/%d" % directory
    base = process.cwd if name.startswith(b"/") else context.directory(directory)
    require_arguments(kernel, arguments, environment)
    program = find_program(
        kernel,
        process,
        base,
        name,
        arguments,
        environment,
        follow=not flags & AT_SYMLINK_NOFOLLOW,
    )
    try:
        return context.execute(program)
    except WouldBlock:  # the program is being compiled
        call.progress = reading
        raise


def clone(
    context: CallContext, flags: int, stack: int, parent_tid: int, tls: int, child_tid: int
) -> int:
    """clone(2): a thread, or a vfork, after which the caller acts for the new child."""
    if flags & _CLONE_THREAD:
        return calls_thread.clone(context, flags, stack, parent_tid, child_tid)
    if flags & (_CLONE_VM | _CLONE_VFORK) != _CLONE_VM | _CLONE_VFORK:
        raise KernelError(Errno.ENOSYS, "clone without CLONE_VM|CLONE_VFORK")
    context.begin_embryo()
    return 0


def exit_group(context: CallContext, code: int) -> int:
    """exit_group(2)."""
    return context.end((code & 0xFF) << 8)


def wait4(context: CallContext, pid: int, status: int, options: int, usage: int) -> int:
    """wait4(2)."""
    if options & ~(WNOHANG | WUNTRACED | WCONTINUED | 0xE0000000):
        raise KernelError(Errno.EINVAL)
    if status:
        context.memory.require(status, 4)
    if usage:
        context.memory.require(usage, RUSAGE_BYTES)
    which = signed(pid)
    if which == -0x8000_0000:
        raise KernelError(Errno.ESRCH)
    result = wait(context.kernel, context.process, which, options | WEXITED)
    if result is None:
        return 0
    if status:
        context.memory.write_u32(status, result.status)
    if usage:
        context.memory.write(usage, pack_rusage(result.usage))
    return result.pid


def waitid(
    context: CallContext, kind: int, number: int, info: int, options: int, usage: int
) -> int:
    """waitid(2)."""
    known = WNOHANG | WUNTRACED | WEXITED | WCONTINUED | WNOWAIT
    if options & ~known or not options & (WUNTRACED | WEXITED | WCONTINUED):
        raise KernelError(Errno.EINVAL)
    if kind == _P_ALL:
        which = -1
    elif kind == _P_PID and signed(number) > 0:
        which = number
    elif kind == _P_PGID and signed(number) >= 0:
        which = -number if number else 0
    elif kind == _P_PIDFD:
        file = context.file(number)
        if not isinstance(file, ProcessFile):
            raise KernelError(Errno.EBADF)
        if file.process.parent is not context.process:
            raise KernelError(Errno.ECHILD)
        which = file.process.pid
    else:
        raise KernelError(Errno.EINVAL)
    if info:
        context.memory.require(info, SIGINFO_BYTES)
    if usage:
        context.memory.require(usage, RUSAGE_BYTES)
    result = wait(context.kernel, context.process, which, options)
    if result is None:
        if info:
            context.memory.write(info, bytes(SIGINFO_BYTES))
        return 0
    code, value = exit_code_and_value(result.status)
    if info:
        context.memory.write(
            info, pack_siginfo(SignalInfo(Signal.SIGCHLD, code, result.pid, result.uid, value))
        )
    if usage:
        context.memory.write(usage, pack_rusage(result.usage))
    return 0


def getpid(context: CallContext) -> int:
    """getpid(2)."""
    return context.process.pid


def getppid(context: CallContext) -> int:
    """getppid(2)."""
    parent = context.process.parent
    return parent.pid if parent is not None else 0


def setpgid(context: CallContext, pid: int, group: int) -> int:
    """setpgid(2)."""
    groups.set_group(context.kernel, context.process, signed(pid), signed(group))
    return 0


def getpgid(context: CallContext, pid: int) -> int:
    """getpgid(2)."""
    return (context.kernel.processes.get(signed(pid)) if pid else context.process).group


def getsid(context: CallContext, pid: int) -> int:
    """getsid(2)."""
    return (context.kernel.processes.get(signed(pid)) if pid else context.process).session


def setsid(context: CallContext) -> int:
    """setsid(2)."""
    return groups.set_session(context.kernel, context.process)


def prctl(context: CallContext, option: int, argument: int) -> int:
    """prctl(2): the thread's name, and the dumpable flag (core files are never written)."""
    process = context.process
    if option == _PR_SET_DUMPABLE and argument in (0, 1):
        process.dumpable = bool(argument)
        return 0
    if option == _PR_GET_DUMPABLE:
        return int(process.dumpable)
    if option == _PR_SET_NAME:
        name = context.memory.read(argument, _NAME_BYTES).split(b"\0", 1)[0]
        context.thread.name = name[: _NAME_BYTES - 1]
        if context.thread.tid == process.pid:
            process.name = context.thread.name
        return 0
    if option == _PR_GET_NAME:
        context.memory.write(argument, context.thread.name.ljust(_NAME_BYTES, b"\0"))
        return 0
    raise KernelError(Errno.EINVAL, f"prctl {option}")
