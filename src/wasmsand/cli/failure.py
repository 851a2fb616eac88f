"""How a subcommand says that wasmsand itself (not the guest) failed."""

from __future__ import annotations

EXIT_FAILURE = 125


class CliError(Exception):
    """One line for the user: what is wrong and what to do."""
