#!/usr/bin/env python3
"""Builds a Python package with extension modules, by its own build system.

    package_build.py SOURCE_DIR SYSROOT

The `script` of a recipe for such a package. It leaves in the source tree `stage/package`, which
goes into the image (see `package_files`), and in SYSROOT what other recipes need:

    lib/modules/MODULE.o     extension modules, isolated (see `extension_modules`)
    include/                 headers, if the recipe names a directory of them
    lib/tools/               what builds of other packages import: Cython declarations, stand-ins

Read from the environment, besides what every step of a build sees:

    PACKAGE_HEADERS          the directory of headers in the installed package
    PACKAGE_NATIVE           `optional` if the package works without its modules
    MESON_OPTIONS            further options of `meson setup`
    MESON_INSTALL_OPTIONS    further options of `meson install`
    MESON                    the program in the source tree to use instead of the recipe `meson`

Owns the programs that every build of a package sees, and the way through Meson; packages that use
setuptools are built by `package_setuptools`. Rules: a package is built as its own build system has
it, for a machine that is another; what is asked to become a shared object becomes an isolated one.
"""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from userland.builder.errors import BuildError
from userland.builder.extension_modules import link_module, take_modules
from userland.builder.package_files import (
    OPTIONAL,
    REQUIRED,
    Surroundings,
    finish_package,
    run,
    surroundings,
)

LINKER = "wasm-ld-22"
PYTHON = "python3.14"
_SITE = "/site"
_DRIVER = """\
#!/bin/sh
# Written by package_build.py.
WASM_CC={compiler} PACKAGE_FLAGS={flags} PACKAGE_LINK_FLAGS={link_flags} LINK_MODULE={link}
export WASM_CC PACKAGE_FLAGS PACKAGE_LINK_FLAGS LINK_MODULE
exec {driver} "$@"
"""
_PROGRAM = """\
#!/bin/sh
exec {python} -c 'import sys; from {module} import {function} as main; sys.exit(main())' "$@"
"""
_ZLIB = """\
# Stands for zlib, which the Python of builds is without. Meson only imports it. Cython asks whether
# the strings of a module get shorter: this makes them longer, and so they stay as they are.
from binascii import crc32

DEFLATED, MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, Z_DEFAULT_COMPRESSION = 8, 15, 8, 0, -1
Z_BEST_SPEED, Z_BEST_COMPRESSION, Z_SYNC_FLUSH, Z_FINISH = 1, 9, 2, 4


class error(Exception):
    pass


def adler32(data, value=1):
    low, high = value & 0xFFFF, value >> 16
    for byte in data:
        low = (low + byte) % 65521
        high = (high + low) % 65521
    return high << 16 | low


def compress(data, level=-1, wbits=15):
    pieces = [data[at : at + 65535] for at in range(0, len(data), 65535)] or [b""]
    blocks = [
        bytes([number == len(pieces)])
        + len(piece).to_bytes(2, "little")
        + (len(piece) ^ 0xFFFF).to_bytes(2, "little")
        + piece
        for number, piece in enumerate(pieces, 1)
    ]
    return b"\\x78\\x01" + b"".join(blocks) + adler32(data).to_bytes(4, "big")
"""
_CROSS = """\
[binaries]
c = '{folder}/cc'
cpp = '{folder}/c++'
ar = '{ar}'
strip = 'true'
pkg-config = 'false'
python = '{python}'

[host_machine]
system = 'linux'
cpu_family = 'wasm32'
cpu = 'wasm32'
endian = 'little'

[properties]
needs_exe_wrapper = true
longdouble_format = 'IEEE_QUAD_LE'
{properties}
[built-in options]
c_args = {c_args}
cpp_args = {c_args}
c_link_args = {link_args}
cpp_link_args = {link_args}
"""


def main() -> int:
    around = surroundings()
    try:
        write_programs(around)
        write_compilers(around)
        site = build_with_meson(around)
        names = take_modules(site, around.sysroot / "lib/modules")
        print(f"{len(names)} extension modules: {' '.join(names)}")
        keep_for_builds(around, site)
        finish_package(around, site, need_of_modules(names))
    except BuildError as error:
        print(f"package_build.py: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        return error.returncode or 1
    return 0


def need_of_modules(names: list[str]) -> str | None:
    """Whether the package needs the interpreter that has its modules."""
    need = os.environ.get("PACKAGE_NATIVE", REQUIRED if names else None)
    if need not in (REQUIRED, OPTIONAL, None):
        raise BuildError(f"PACKAGE_NATIVE is {need!r}, not {REQUIRED} or {OPTIONAL}")
    return need


def write_programs(around: Surroundings) -> None:
    """The only Python, Cython and other Python programs that are found by their names."""
    programs = around.work / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "python3", PYTHON):
        (programs / name).symlink_to(around.python)
    (around.work / "lib").mkdir()
    (around.work / "lib/zlib.py").write_text(_ZLIB)
    scripts = {}
    for folder in around.tools:
        if (folder / "cython.py").exists():
            scripts["cython"] = f'#!/bin/sh\nexec {around.python} {folder / "cython.py"} "$@"\n'
        for file in sorted(folder.glob("*.dist-info/entry_points.txt")):
            for name, (module, function) in console_scripts(file).items():
                scripts[name] = _PROGRAM.format(
                    python=around.python, module=module, function=function
                )
    for name, text in scripts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)


def console_scripts(file: Path) -> dict[str, tuple[str, str]]:
    """The programs of a tool: for each the module and the function that is its main one."""
    entries = configparser.RawConfigParser(delimiters=["="])
    entries.optionxform = str  # type: ignore[assignment,method-assign]  # names have capitals
    entries.read(file, encoding="utf-8")
    if "console_scripts" not in entries:
        return {}
    values = {name: value.split(":") for name, value in entries["console_scripts"].items()}
    return {name: (value[0].strip(), value[1].strip()) for name, value in values.items()}


def write_compilers(around: Surroundings) -> None:
    """`cc` and, if there is a library for it, `c++` in the directory of the build."""
    headers = around.needed(f"include/{PYTHON}", "python")
    link = [sys.executable, __file__, "--link-module", str(around.tree)]
    # Packages have headers of the same names as Python's, and their own come first.
    flags = [f"-isystem{headers}", "-D__linux__=1"]
    compilers = {"cc": (flags, list[str]())}
    if cxx_library := around.holding("include/c++/v1"):
        cxx = ["-nostdinc++", "-fwasm-exceptions", f"-I{cxx_library}/include/c++/v1"]
        compilers["c++"] = ([*cxx, *flags], [f"-L{cxx_library}/lib", "-lc++"])
    for name, (own, libraries) in compilers.items():
        driver = around.work / name
        driver.write_text(
            _DRIVER.format(
                compiler=shlex.quote(os.environ["CC"]),
                flags=shlex.quote(" ".join(own)),
                link_flags=shlex.quote(" ".join(libraries)),
                link=shlex.quote(shlex.join(link)),
                driver=Path(__file__).with_name("package_cc.sh"),
            )
        )
        driver.chmod(0o755)


def build_with_meson(around: Surroundings) -> Path:
    """Configure, compile and install; returns the directory of installed packages."""
    own = os.environ.get("MESON")
    program = around.tree / own if own else around.work / "meson.py"
    if not own:
        around.tool("mesonbuild", "meson")
        program.write_text("import sys\nfrom mesonbuild.mesonmain import main\nsys.exit(main())\n")
    meson = [str(around.python), str(program)]
    build = around.work / "build"
    options = [f"-Dpython.{kind}libdir={_SITE}" for kind in ("pure", "plat")]
    options += ["-Dbuildtype=release", "-Db_ndebug=if-release", "-Dpython.bytecompile=-1"]
    options += shlex.split(os.environ.get("MESON_OPTIONS", ""))
    cross = around.work / "cross.ini"
    cross.write_text(_cross_file(around))
    setup = ["setup", str(build), str(around.tree), "--prefix=/usr", f"--cross-file={cross}"]
    run([*meson, *setup, *options], around)
    run([*meson, "compile", "-C", str(build), "-j", os.environ.get("JOBS", "1")], around)
    stage = around.work / "stage"
    install = ["install", "-C", str(build), "--no-rebuild", f"--destdir={stage}"]
    run([*meson, *install, *shlex.split(os.environ.get("MESON_INSTALL_OPTIONS", ""))], around)
    return stage / _SITE[1:]


def _cross_file(around: Surroundings) -> str:
    # The build type says how to optimise.
    c_args = [flag for flag in os.environ["CFLAGS"].split() if flag != "-O2"]
    properties = ""
    if openblas := around.holding("include/openblas_config.h"):
        properties += f"openblas_includedir = '{openblas}/include'\n"
        properties += f"openblas_librarydir = '{openblas}/lib'\n"
    return _CROSS.format(
        folder=around.work,
        ar=os.environ["AR"],
        python=around.python,
        properties=properties,
        c_args=c_args,
        link_args=os.environ["LDFLAGS"].split(),
    )


def keep_for_builds(around: Surroundings, site: Path) -> None:
    """Keep what the builds of other packages need of this one."""
    tools = around.sysroot / "lib/tools"
    for file in site.rglob("*.pxd"):
        target = tools / file.relative_to(site)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    stand_in = Path(os.environ["RECIPE"]) / "stand-in"
    if stand_in.is_dir():
        shutil.copytree(stand_in, tools, dirs_exist_ok=True)
    if headers := os.environ.get("PACKAGE_HEADERS"):
        shutil.copytree(site / headers, around.sysroot / "include", dirs_exist_ok=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--link-module"]:
        link_module(sys.argv[3:], LINKER, Path(sys.argv[2]))
    else:
        sys.exit(main())
