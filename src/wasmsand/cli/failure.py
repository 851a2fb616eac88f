"""The exceptions with which a subcommand reports a failure of wasmsand itself, not of the guest.

Owns the exit statuses: 2 for a mistake on the command line, 125 for other failures, 126 and 127 for
a program that cannot be run or does not exist, as shells have them.
"""

from __future__ import annotations

EXIT_USAGE = 2
EXIT_FAILURE = 125
EXIT_CANNOT_RUN = 126
EXIT_NOT_FOUND = 127


class CliError(Exception):
    """One line for the user: what is wrong and what to do."""

    status = EXIT_FAILURE


class UsageError(CliError):
    """The command line makes no sense."""

    status = EXIT_USAGE


class NotRun(CliError):
    """A program could not be started."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
