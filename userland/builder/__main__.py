"""`python -m userland.builder`: the same as `wasmsand build`."""

import sys

from userland.builder.cli import main

sys.exit(main(sys.argv[1:]))
