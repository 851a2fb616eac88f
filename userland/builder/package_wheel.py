#!/usr/bin/env python3
"""Makes a package of an unpacked wheel of pure Python.

    package_wheel.py WHEEL_DIR SYSROOT

The `script` of a recipe for such a package. As `package_build.py`, it leaves `stage/package` in the
source tree.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from userland.builder.package_files import finish_package, surroundings


def main() -> int:
    around = surroundings()
    around.sysroot.mkdir(parents=True, exist_ok=True)
    site = around.work / "site"
    shutil.copytree(around.tree, site, ignore=lambda folder, names: {around.work.name} & {*names})
    finish_package(around, site)
    return 0


if __name__ == "__main__":
    sys.exit(main())
