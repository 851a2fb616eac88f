"""`python -m wasmsand` is the `wasmsand` command."""

from __future__ import annotations

import sys

from wasmsand.cli import main

if __name__ == "__main__":
    sys.exit(main())
