"""The files that `wasmsand rpc --confine` can still read: Python, the package, the image, compiled
modules, unpacked wheels.

Rules: no file of the user is readable, not even the list of users. Other processes execute the
cache of compiled modules, so this process only reads it: it keeps the modules that it compiles in
memory, and another process compiles the user's programs beforehand. Only the interpreter itself
can be executed, and it is then confined too.
"""

from __future__ import annotations

import os
import struct
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wasmsand.cli.compile_ahead import compile_ahead
from wasmsand.confinement import Barriers, Policy, confine
from wasmsand.engine.choosing import settle_places
from wasmsand.machine.image import image_directories
from wasmsand.machine.packages.wheel_cache import wheel_directory

_SYSTEM: Final = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu",
)
"""Files that Python, libc and wasmtime read."""
_LOOKUPS: Final = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/pki",
    "/usr/share/ca-certificates",
)
"""Files that look-ups of names and the verification of certificates need."""
_PROGRAM_HEADER_INTERPRETER: Final = 3


def confine_server(
    readable: Sequence[str],
    parent: int | None,
    *,
    network: bool = False,
    open_files: int | None = None,
    file_bytes: int | None = None,
) -> Barriers:
    """Confine this process to what a sandbox needs; `network`: it also makes TCP connections. A
    process with many sandboxes needs more `open_files`, and larger files (`file_bytes`). Raises
    `OSError`, and `ParentGone`."""
    compile_ahead([path for path in readable if os.path.isdir(path)])
    # Resolve now what depends on the working directory or on the list of users.
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path if entry]
    engine_places = settle_places()
    os.chdir("/")
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]
    places += [path for path in sysconfig.get_paths().values() if path]
    places += map(str, image_directories())
    places += [str(engine_places.compiled_modules), str(_wheels()), *_SYSTEM, *readable]
    places += [*_LOOKUPS, *_authorities()] if network else ()
    return confine(
        Policy(
            readable=[os.path.realpath(place) for place in places],
            writable=[str(engine_places.scratch)],
            executable=_interpreter(),
            network=network,
            open_files=open_files,
            file_bytes=file_bytes,
            parent=parent,
        )
    )


def _authorities() -> list[str]:
    """Where OpenSSL finds the certificates of authorities, also by variables."""
    import ssl

    paths = ssl.get_default_verify_paths()
    return [path for path in (paths.cafile, paths.capath) if path]


def _wheels() -> Path:
    """The directory of unpacked wheels. It must exist before the process is confined."""
    directory = wheel_directory()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        pass  # not writable: there are no wheels then
    return directory


def _interpreter() -> list[str]:
    """This Python, and the dynamic loader that it needs."""
    if not sys.executable:
        return []
    program = os.path.realpath(sys.executable)
    loader = _loader(Path(program))
    return [program] if loader is None else [program, os.path.realpath(loader)]


def _loader(program: Path) -> str | None:
    """The program interpreter of a 64-bit ELF file."""
    try:
        with program.open("rb") as file:
            header = file.read(64)
            if header[:5] != b"\x7fELF\x02":
                return None
            (table,) = struct.unpack_from("<Q", header, 32)
            size, count = struct.unpack_from("<HH", header, 54)
            for index in range(count):
                file.seek(table + index * size)
                entry = file.read(56)
                if struct.unpack_from("<I", entry)[0] == _PROGRAM_HEADER_INTERPRETER:
                    offset, length = struct.unpack_from("<Q", entry, 8)[0], entry[32:40]
                    file.seek(offset)
                    name = file.read(min(struct.unpack("<Q", length)[0], 4096))
                    return os.fsdecode(name.rstrip(b"\0"))
    except (OSError, struct.error):
        pass
    return None
