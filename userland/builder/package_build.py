#!/usr/bin/env python3
"""Builds a Python package with extension modules, by its own build system.

    package_build.py SOURCE_DIR SYSROOT

The `script` of a recipe for such a package. It leaves in the source tree `stage/package`, the
directory that goes into the image (Python files with their compiled form, metadata as pip writes
it), and in SYSROOT what other recipes need:

    lib/modules/MODULE.o     extension modules, isolated (see `extension_modules`)
    include/                 headers, if the recipe names a directory of them
    lib/tools/               what builds of other packages import: Cython declarations, stand-ins

Read from the environment, besides what every step of a build sees:

    PACKAGE_HEADERS          the directory of headers in the installed package
    MESON_OPTIONS            further options of `meson setup`
    MESON                    the program in the source tree to use instead of the recipe `meson`

Rules: only programs of recipes run (the recipe `build-python` and tools for it), never those of a
Python that happens to be installed; no path of the machine gets into the output; tests of the
package are left out.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from userland.builder.errors import BuildError  # noqa: E402  # found by the line above
from userland.builder.extension_modules import link_module, take_modules  # noqa: E402

LINKER = "wasm-ld-22"
PYTHON = "python3.14"
_SITE = "/site"
_TESTS = ("tests", "test", "__pycache__", "conftest.py")
_DRIVER = """\
#!/bin/sh
# Written by package_build.py.
WASM_CC={compiler} PACKAGE_FLAGS={flags} PACKAGE_LINK_FLAGS={link_flags} LINK_MODULE={link}
export WASM_CC PACKAGE_FLAGS PACKAGE_LINK_FLAGS LINK_MODULE
exec {driver} "$@"
"""
_CROSS = """\
[binaries]
c = '{folder}/cc'
cpp = '{folder}/c++'
ar = '{ar}'
strip = 'true'
pkg-config = 'false'
cython = ['{python}', '{cython}', '-3']
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


@dataclass(frozen=True)
class Surroundings:
    """Where the build finds what other recipes have made."""

    tree: Path
    sysroot: Path
    roots: tuple[Path, ...]

    def holding(self, path: str) -> Path | None:
        """The first directory of a recipe that has this path."""
        return next((root for root in self.roots if (root / path).exists()), None)

    def needed(self, path: str, recipe: str) -> Path:
        root = self.holding(path)
        if root is None:
            raise BuildError(f"the recipe does not depend on {recipe}, which has {path}")
        return root / path

    @property
    def python(self) -> Path:
        return self.needed("bin/python3", "build-python")

    @property
    def tools(self) -> list[Path]:
        return [root / "lib/tools" for root in self.roots if (root / "lib/tools").is_dir()]

    def tool(self, name: str, recipe: str) -> Path:
        for folder in self.tools:
            if (folder / name).exists():
                return folder / name
        raise BuildError(f"the recipe does not depend on {recipe}")

    @property
    def work(self) -> Path:
        return self.tree / "wasmsand-build"

    @property
    def environment(self) -> dict[str, str]:
        """For everything that runs: no Python of the machine is found by its name."""
        return {
            **{name: os.environ[name] for name in ("HOME", "LC_ALL", "TZ", "SOURCE_DATE_EPOCH")},
            "PATH": f"{self.work / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(map(str, self.tools)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONNOUSERSITE": "1",
        }


def main() -> int:
    tree, sysroot = (Path(argument).resolve() for argument in sys.argv[1:3])
    links = [flag[2:] for flag in os.environ["LDFLAGS"].split() if flag.startswith("-L")]
    around = Surroundings(tree, sysroot, tuple(Path(link).parent for link in links))
    try:
        write_drivers(around)
        site = build_with_meson(around)
        names = take_modules(site, sysroot / "lib/modules")
        print(f"{len(names)} extension modules: {' '.join(names)}")
        keep_for_builds(around, site)
        finish_package(around, site)
    except BuildError as error:
        print(f"package_build.py: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        return error.returncode or 1
    return 0


def write_drivers(around: Surroundings) -> None:
    """The compilers, and the only Python that is found by its name."""
    programs = around.work / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "python3", PYTHON):
        (programs / name).symlink_to(around.python)
    headers = around.needed(f"include/{PYTHON}", "python")
    link = [sys.executable, __file__, "--link-module", str(around.tree)]
    flags = [f"-I{headers}", "-D__linux__=1"]
    cxx_headers = around.holding("include/c++/v1")
    cxx = ["-nostdinc++", "-fwasm-exceptions", f"-I{cxx_headers}/include/c++/v1"]
    for name, own, libraries in (
        ("cc", flags, []),
        ("c++", [*cxx, *flags], [f"-L{cxx_headers}/lib", "-lc++"]),
    ):
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
    _run([*meson, *setup, *options], around)
    _run([*meson, "compile", "-C", str(build), "-j", os.environ.get("JOBS", "1")], around)
    stage = around.work / "stage"
    install = ["install", "-C", str(build), "--no-rebuild", f"--destdir={stage}"]
    _run([*meson, *install, "--tags=runtime,python-runtime,devel"], around)
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
        cython=around.tool("cython.py", "cython"),
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


def finish_package(around: Surroundings, site: Path) -> None:
    """Make `stage/package` of what was installed."""
    for path in [path for path in site.rglob("*") if path.name in _TESTS]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in [path for path in site.rglob("*") if path.suffix in (".a", ".pxd", ".pyi")]:
        path.unlink()
    _forget_paths(around, site)
    write_metadata(around.tree, site)
    place = f"/usr/lib/python/{Path(os.environ['RECIPE']).name}"
    _run([str(around.python), "-S", "-c", _COMPILE, str(site), place], around)
    target = around.tree / "stage/package"
    target.parent.mkdir(exist_ok=True)
    site.rename(target)


_COMPILE = """
import py_compile, sys
from pathlib import Path
root, place = Path(sys.argv[1]), Path(sys.argv[2])
for source in sorted(root.rglob("*.py")):
    py_compile.compile(str(source), dfile=str(place / source.relative_to(root)), doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"""


def _forget_paths(around: Surroundings, site: Path) -> None:
    """Some packages note how they were built. Keep that, without the paths of this machine."""
    secrets = {
        str(around.work): "/usr/src/build",
        str(around.tree): "/usr/src",
        **{str(root): "/usr" for root in around.roots},
        str(Path(os.environ["CC"]).parent.parent): "/usr",
        str(ROOT): "/usr/src/wasmsand",
    }
    for file in _text_files(site):
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
        if any(path in text for path in secrets):
            for path, name in secrets.items():
                text = text.replace(path, name)
            file.write_text(text, encoding="utf-8", errors="surrogateescape")


def _text_files(site: Path) -> Iterator[Path]:
    for file in site.rglob("*"):
        if file.suffix in (".py", ".txt", ".json", ".toml", ".ini", ".pc", ".h") and file.is_file():
            yield file


def write_metadata(tree: Path, site: Path) -> None:
    """The directory by which pip and importlib.metadata know an installed package."""
    text = (tree / "PKG-INFO").read_text(encoding="utf-8")
    fields = dict(
        line.split(": ", 1) for line in text.split("\n\n")[0].splitlines() if ": " in line
    )
    name = fields["Name"].replace("-", "_").replace(".", "_").lower()
    info = site / f"{name}-{fields['Version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(text, encoding="utf-8")
    (info / "INSTALLER").write_text("wasmsand\n")
    (info / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: wasmsand\nRoot-Is-Purelib: false\nTag: cp314-cp314-any\n"
    )
    files = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    record = f"{info.name}/RECORD"
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in [*files, record]))


def _run(argv: list[str], around: Surroundings) -> None:
    sys.stdout.flush()
    subprocess.run(argv, cwd=around.tree, env=around.environment, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--link-module"]:
        link_module(sys.argv[3:], LINKER, Path(sys.argv[2]))
    else:
        sys.exit(main())
