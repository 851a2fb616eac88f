"""`python -m fuzz`: measure the coverage of wasmsand from its first import on, then run."""

from __future__ import annotations

import sys

from fuzz import coverage

coverage.install()

from fuzz.cli import main  # noqa: E402  (wasmsand must be imported after `install`)

sys.exit(main())
