"""Environment variables of a sandbox.

Owns the variables that every command starts with and those that a user has set. Rules: a variable
that the user sets overrides the built-in one; no variable of the host's own environment enters a
sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping

from wasmsand.machine.command import DEFAULT_USER, ROOT_USER
from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.options import HOME

BASE_VARIABLES: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": HOME,
    "USER": "user",
    "LOGNAME": "user",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "TMPDIR": "/tmp",
}


_ROOT_VARIABLES: Mapping[str, str] = {"HOME": "/root", "USER": ROOT_USER, "LOGNAME": ROOT_USER}


def command_environment(
    *layers: Mapping[str, str], cwd: str, user: str = DEFAULT_USER
) -> dict[str, str]:
    """The environment of one command: the base, PWD, then each of `layers`."""
    environment = {**BASE_VARIABLES, "PWD": cwd}
    if user == ROOT_USER:
        environment.update(_ROOT_VARIABLES)
    for layer in layers:
        environment.update(layer)
    return environment


class Environment:
    """The variables that commands of one sandbox see: `sandbox.env`.

    Variables that a command exports itself are lost when the command ends.

    Example:
        sandbox.env.set("TOKEN", "abc")
        sandbox.commands.run("echo $TOKEN")
    """

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment
        self._variables = attachment.backend.variables

    def _use(self, variables: dict[str, str]) -> None:
        """The sandbox was restored: change these variables from now on."""
        self._variables = variables

    def set(self, name: str, value: str) -> None:
        """Set the variable `name` for every later command.

        Example:
            sandbox.env.set("LANG", "C")
        """
        self._attachment.check_open()
        self._variables[arguments.variable_name(name)] = arguments.text("value", value)

    def get(self, name: str) -> str | None:
        """Return the value that was set for `name`, or the built-in value, or None.

        Example:
            sandbox.env.get("HOME")
        """
        self._attachment.check_open()
        return self.all().get(arguments.variable_name(name))

    def unset(self, name: str) -> None:
        """Remove the value that was set for `name`; a built-in variable gets its built-in value
        back. If no value was set, nothing happens.

        Example:
            sandbox.env.unset("LANG")
        """
        self._attachment.check_open()
        self._variables.pop(arguments.variable_name(name), None)

    def all(self) -> dict[str, str]:
        """Return a copy of all variables that a command would see.

        Example:
            sorted(sandbox.env.all())
        """
        self._attachment.check_open()
        return command_environment(self._variables, cwd=self._attachment.cwd)

    def chosen(self) -> dict[str, str]:
        """A copy of the variables that were set, without the built-in ones."""
        return dict(self._variables)

    def __repr__(self) -> str:
        # Names only: values are often secret, and reprs end up in logs.
        return f"<Environment {sorted(self._variables)}>"
