#!/usr/bin/env python3
"""Links an interpreter that has the extension modules of packages inside.

    link_python.py SOURCE_DIR SYSROOT

The `script` of the recipe `python-full`. The interpreter is the recipe `python` as one object; the
modules are those of all recipes that this one depends on (see `package_build.py`), and so are the
libraries that the modules use. It leaves the linked program as SOURCE_DIR/python, and the list of
its modules in SYSROOT/lib/modules.txt.

Rules: a call that does not fit its function is an error, because it would trap; libraries are
linked once for all modules.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from userland.builder.errors import BadModule
from userland.builder.extension_modules import module_table
from userland.builder.method_tables import check_methods
from userland.builder.thread_variables import definitions, with_thread_variables

_PYTHON = "libpython3.14.a"
_RESUME = """
/* Where a stored interpreter is entered (userland/libc/checkpoint). It was exported by this name
 * before the interpreter became one object, which keeps no such names. */
void checkpoint_resume(void);
__attribute__((__export_name__("_resume"))) void resume(void) { checkpoint_resume(); }
"""


def main() -> int:
    tree, sysroot = (Path(argument).resolve() for argument in sys.argv[1:3])
    links = [flag for flag in os.environ["LDFLAGS"].split() if flag.startswith("-L")]
    folders = [Path(flag[2:]) for flag in links]
    objects = sorted(file for folder in folders for file in (folder / "modules").glob("*.o"))
    names = [file.name.removesuffix(".o") for file in objects]
    if not _all_methods_fit(objects):
        return 1
    (sysroot / "lib").mkdir(parents=True)
    (sysroot / "lib/modules.txt").write_text("".join(f"{name}\n" for name in names))
    headers = next(folder.parent / "include" for folder in folders if _is_python(folder))
    table = tree / "modules.c"
    objects, variables = _with_thread_variables(objects, tree / "modules")
    table.write_text(module_table(names) + _RESUME + variables)
    compiler = os.environ["CC"]
    flags = [*os.environ["CFLAGS"].split(), f"-I{headers}/python3.14"]
    archives = sorted(file for folder in folders for file in folder.glob("lib*.a"))
    python = next(file for file in archives if file.name == _PYTHON)
    libraries = [file for file in archives if file.name != _PYTHON]
    compile_table = [compiler, *flags, "-c", str(table), "-o", str(table.with_suffix(".o"))]
    link = [compiler, "-o", str(tree / "python"), "-Wl,--fatal-warnings"]
    link += ["-Wl,--whole-archive", str(python), "-Wl,--no-whole-archive"]
    link += [str(table.with_suffix(".o")), *map(str, objects), *map(str, libraries)]
    for command in (compile_table, link):
        if status := subprocess.run(command, check=False).returncode:
            return status
    return 0


def _all_methods_fit(objects: list[Path]) -> bool:
    fit = True
    for file in objects:
        try:
            check_methods(file.read_bytes(), file.name.removesuffix(".o"))
        except BadModule as error:
            print(f"link_python.py: {error}", file=sys.stderr)
            fit = False
    return fit


def _with_thread_variables(objects: list[Path], folder: Path) -> tuple[list[Path], str]:
    """The objects to link, in `folder` if they were changed, and definitions for them."""
    folder.mkdir()
    linked, variables = [], []
    for file in objects:
        data, found = with_thread_variables(file.read_bytes(), file.name.removesuffix(".o"))
        variables += found
        if found:
            file = folder / file.name
            file.write_bytes(data)
        linked.append(file)
    return linked, definitions(variables)


def _is_python(folder: Path) -> bool:
    return (folder / _PYTHON).is_file()


if __name__ == "__main__":
    sys.exit(main())
