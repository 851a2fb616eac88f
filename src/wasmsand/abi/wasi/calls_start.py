"""What a program receives at its start: arguments, environment, preopened directories.

Owns args_*, environ_* and fd_prestat_*. Rules: a program cannot ask for its working directory, so
PWD, if it is in the environment, is set to that directory.
"""

from __future__ import annotations

from itertools import accumulate
from struct import pack
from typing import Final

from wasmsand.abi.wasi.context import WasiContext
from wasmsand.abi.wasi.structs import PRESTAT
from wasmsand.kernel.errno import Errno, KernelError

_DIRECTORY_TAG: Final = 0


def _environment(context: WasiContext) -> tuple[bytes, ...]:
    process = context.process
    try:
        pwd = b"PWD=" + context.kernel.namespace.path_of(process.cwd)
    except KernelError:  # the directory was removed
        return process.environ
    return tuple(pwd if entry.startswith(b"PWD=") else entry for entry in process.environ)


def _write_sizes(context: WasiContext, strings: tuple[bytes, ...], count: int, size: int) -> int:
    context.memory.require(size, 4)
    context.memory.write_u32(count, len(strings))
    context.memory.write_u32(size, sum(len(string) + 1 for string in strings))
    return 0


def _write_strings(
    context: WasiContext, strings: tuple[bytes, ...], pointers: int, buffer: int
) -> int:
    block = b"\0".join((*strings, b""))
    starts = accumulate([len(string) + 1 for string in strings[:-1]], initial=buffer)
    context.memory.require(buffer, len(block))
    count = len(strings)
    context.memory.write(pointers, pack(f"<{count}I", *starts) if count else b"")
    context.memory.write(buffer, block)
    return 0


def args_sizes_get(context: WasiContext, count: int, size: int) -> int:
    """The number of arguments, and their total size with NULs."""
    return _write_sizes(context, context.process.argv, count, size)


def args_get(context: WasiContext, pointers: int, buffer: int) -> int:
    """The arguments, and a pointer to each."""
    return _write_strings(context, context.process.argv, pointers, buffer)


def environ_sizes_get(context: WasiContext, count: int, size: int) -> int:
    """The number of variables, and their total size with NULs."""
    return _write_sizes(context, _environment(context), count, size)


def environ_get(context: WasiContext, pointers: int, buffer: int) -> int:
    """The variables, and a pointer to each."""
    return _write_strings(context, _environment(context), pointers, buffer)


def _preopen_name(context: WasiContext, fd: int) -> bytes:
    # EBADF also for an open descriptor that is not a preopen: libcs count up until they get it.
    name = context.descriptors.get(fd).preopen
    if name is None:
        raise KernelError(Errno.EBADF)
    return name


def fd_prestat_get(context: WasiContext, fd: int, result: int) -> int:
    """The type of a preopen, and the length of its name."""
    context.memory.pack(PRESTAT, result, _DIRECTORY_TAG, len(_preopen_name(context, fd)))
    return 0


def fd_prestat_dir_name(context: WasiContext, fd: int, address: int, size: int) -> int:
    """The name of a preopen, without a NUL."""
    name = _preopen_name(context, fd)
    if len(name) > size:
        raise KernelError(Errno.ENAMETOOLONG)
    context.memory.write(address, name)
    return 0
