#!/usr/bin/env python3
"""Builds a Python package whose build system is setuptools.

    package_setuptools.py SOURCE_DIR SYSROOT

The `script` of a recipe for such a package. It leaves what `package_build.py` leaves: the files of
the package in `stage/package` of the source tree, isolated extension modules and what other builds
need in SYSROOT. Read from the environment, besides what `package_build.py` reads:

    PACKAGE_PARTS        `all` (default); `files`: a package whose modules another recipe builds, or
                         nobody; `modules`: only the modules, for files that are in another recipe
    SETUP_GLOBAL_OPTIONS options of `setup.py` before the command
    SETUP_OPTIONS        options and commands after it, like `build_ext --disable-zlib`
    SETUP_ENVIRONMENT    variables that `setup.py` reads, like `WITH_X=1 WITHOUT_Y=1`

Owns how setuptools is told that it builds for another machine. Rules: `setup.py` sees the target's
compilers, headers and suffix wherever it asks for those of its Python; the metadata is what the
released source says, so that no tool has to compute it again.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from userland.builder.errors import BuildError
from userland.builder.extension_modules import take_modules
from userland.builder.package_build import (
    PYTHON,
    keep_for_builds,
    need_of_modules,
    write_compilers,
    write_programs,
)
from userland.builder.package_files import Surroundings, finish_package, surroundings

_COMMANDS = {"all": "build", "files": "build_py", "modules": "build_ext"}
_SETUP = """\
# Written by package_setuptools.py. What Python says about itself is the target's.
import os, sys, sysconfig

target = {target!r}
sysconfig.get_config_vars().update(target)
paths = sysconfig.get_paths
sysconfig.get_paths = lambda *given, **named: {{
    **paths(*given, **named), "include": target["INCLUDEPY"], "platinclude": target["INCLUDEPY"]
}}
sysconfig.get_path = lambda name, *given, **named: sysconfig.get_paths(*given, **named)[name]
import setuptools

sys.argv[0] = "setup.py"
sys.path.insert(0, os.getcwd())
if os.path.exists("setup.py"):
    import runpy

    runpy.run_path("setup.py", run_name="__main__")
else:
    setuptools.setup()
"""


def main() -> int:
    around = surroundings()
    parts = os.environ.get("PACKAGE_PARTS", "all")
    try:
        if parts not in _COMMANDS:
            raise BuildError(f"PACKAGE_PARTS is {parts!r}, not one of {', '.join(_COMMANDS)}")
        write_programs(around)
        if parts != "files":
            write_compilers(around)
        site = build_with_setuptools(around, _COMMANDS[parts])
        names = take_modules(site, around.sysroot / "lib/modules")
        print(f"{len(names)} extension modules: {' '.join(names)}")
        if bool(names) != (parts != "files"):
            raise BuildError(f"{len(names)} extension modules were built, for `{parts}`")
        if parts != "modules":
            keep_for_builds(around, site)
            finish_package(around, site, need_of_modules(names))
    except BuildError as error:
        print(f"package_setuptools.py: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        return error.returncode or 1
    return 0


def build_with_setuptools(around: Surroundings, command: str) -> Path:
    """Run a command of `setup.py`; returns the directory of installed packages."""
    around.tool("setuptools", "setuptools")
    site = around.work / "site"
    site.mkdir()
    places = around.work / "places.cfg"
    places.write_text(
        f"[build]\nbuild_base = {around.work / 'build'}\nbuild_lib = {site}\n"
        f"parallel = {os.environ.get('JOBS', '1')}\n"
    )
    program = around.work / "setup_for_target.py"
    program.write_text(_SETUP.format(target=_target_variables(around)))
    subprocess.run(
        [
            str(around.python),
            str(program),
            *shlex.split(os.environ.get("SETUP_GLOBAL_OPTIONS", "")),
            command,
            *shlex.split(os.environ.get("SETUP_OPTIONS", "")),
        ],
        cwd=around.tree,
        env={
            **around.environment,
            **_compiler_variables(around),
            "DIST_EXTRA_CONFIG": str(places),
            "_PYTHON_HOST_PLATFORM": "linux-wasm32",
            **dict(
                word.split("=", 1) for word in shlex.split(os.environ.get("SETUP_ENVIRONMENT", ""))
            ),
        },
        check=True,
    )
    return site


def _compiler_variables(around: Surroundings) -> dict[str, str]:
    """What setuptools, and many a `setup.py`, take from the environment."""
    cc, cxx = around.work / "cc", around.work / "c++"
    flags = f"-DNDEBUG {os.environ['CFLAGS']}"
    return {
        "CC": str(cc),
        "CXX": str(cxx),
        "LDSHARED": f"{cc} -shared",
        "LDCXXSHARED": f"{cxx} -shared",
        "CFLAGS": flags,
        "CXXFLAGS": flags,
        "CPPFLAGS": os.environ["CPPFLAGS"],
        "LDFLAGS": os.environ["LDFLAGS"],
        "AR": os.environ["AR"],
        "ARFLAGS": "rcsD",
        "RANLIB": os.environ["RANLIB"],
        "PKG_CONFIG": "false",
    }


def _target_variables(around: Surroundings) -> dict[str, str | int]:
    """What the target's `sysconfig` would say, as far as builds ask."""
    # A build of files alone needs no headers.
    root = around.holding(f"include/{PYTHON}")
    headers = str(root / f"include/{PYTHON}") if root else ""
    compilers = _compiler_variables(around)
    names = ("CC", "CXX", "LDSHARED", "LDCXXSHARED", "CFLAGS", "CPPFLAGS", "AR", "ARFLAGS")
    return {
        **{name: compilers[name] for name in names},
        "OPT": "",
        "CCSHARED": "",
        "EXT_SUFFIX": ".so",
        "SHLIB_SUFFIX": ".so",
        "SO": ".so",
        "SOABI": "",
        "INCLUDEPY": headers,
        "CONFINCLUDEPY": headers,
        "Py_ENABLE_SHARED": 0,
        "Py_GIL_DISABLED": 0,
        "SIZEOF_VOID_P": 4,
        "SIZEOF_LONG": 4,
        "SIZEOF_SIZE_T": 4,
        "SIZEOF_TIME_T": 8,
    }


if __name__ == "__main__":
    sys.exit(main())
