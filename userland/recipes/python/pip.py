"""What `python3 -m pip` says as long as no packages can be installed."""

import sys

if __name__ != "__main__":
    raise ModuleNotFoundError("pip is not part of this Python: it has the standard library only")

sys.exit(
    "pip is not part of this Python: packages cannot be installed in the sandbox.\n"
    "The standard library is there; modules of your own go beside your program, or into a\n"
    "directory that PYTHONPATH names."
)
