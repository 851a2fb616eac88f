"""`python3 -m ensurepip`."""

import sys

from . import _main

if __name__ == "__main__":
    sys.exit(_main())
