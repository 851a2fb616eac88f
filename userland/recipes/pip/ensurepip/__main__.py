"""`python3 -m ensurepip`."""

import sys

import ensurepip

if __name__ == "__main__":
    sys.exit(ensurepip._main())
