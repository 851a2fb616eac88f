#!/usr/bin/env python3
"""Makes pip's package: the wheel, with our light part inside and in front of it.

    build_pip.py UNPACKED_DIR SYSROOT

Leaves in `stage`: `package`, pip's directory in the registry; `ensurepip`, for the library; `pip`,
the command. Rules: of pip's own files only the start of `__main__.py` and the entry points change.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from userland.builder.package_wheel import compile_files, make_package

_USUAL = "from pip._internal.cli.main import cli as _main"
_OURS = "from pip._registry.command import cli as _main"
_ENTRY_POINTS = """[console_scripts]
pip = pip._registry.command:cli
pip3 = pip._registry.command:cli
"""
_COMMAND = """#!/usr/bin/python3
import sys

from pip._registry.command import cli

if __name__ == "__main__":
    sys.exit(cli())
"""


def main() -> int:
    tree, sysroot = (Path(argument).resolve() for argument in sys.argv[1:3])
    recipe = Path(os.environ["RECIPE"])
    sysroot.mkdir(parents=True, exist_ok=True)
    shutil.copytree(recipe / "registry", tree / "pip/_registry", ignore=_is_compiled)
    start = tree / "pip/__main__.py"
    text = start.read_text(encoding="utf-8")
    if _USUAL not in text:
        sys.exit(f"{start} does not start pip as it used to: {_USUAL}")
    start.write_text(text.replace(_USUAL, _OURS), encoding="utf-8")
    next(tree.glob("*.dist-info/entry_points.txt")).write_text(_ENTRY_POINTS, encoding="utf-8")
    make_package(tree, "pip")
    library = tree / "stage/ensurepip"
    shutil.copytree(recipe / "ensurepip", library, ignore=_is_compiled)
    compile_files(library, "/usr/lib/python3.14/ensurepip")
    command = tree / "stage/pip"
    command.write_text(_COMMAND, encoding="utf-8")
    command.chmod(0o755)
    return 0


def _is_compiled(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


if __name__ == "__main__":
    sys.exit(main())
