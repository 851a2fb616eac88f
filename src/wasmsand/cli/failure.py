"""The exception with which a subcommand reports a failure of wasmsand itself, not of the guest."""

from __future__ import annotations

EXIT_FAILURE = 125


class CliError(Exception):
    """One line for the user: what is wrong and what to do."""
