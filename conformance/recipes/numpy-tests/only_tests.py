"""numpy's own Meson, for the modules that only its tests use.

Rules: arguments are passed on; the command `compile` gets the names of these modules, so that the
rest of numpy is not compiled a second time.
"""

from __future__ import annotations

import runpy
import sys
import sysconfig
from pathlib import Path

_MODULES = (
    "_multiarray_tests",
    "_operand_flag_tests",
    "_rational_tests",
    "_simd",
    "_struct_ufunc_tests",
    "_umath_tests",
)
_MESON = Path(__file__).resolve().parent / "vendored-meson/meson/meson.py"

if __name__ == "__main__":
    if sys.argv[1:2] == ["compile"]:
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        files = [f"numpy/_core/{name}{suffix}" for name in _MODULES]
        sys.argv.append(f"--ninja-args={','.join(files)}")
    sys.argv[0] = str(_MESON)
    runpy.run_path(str(_MESON), run_name="__main__")
