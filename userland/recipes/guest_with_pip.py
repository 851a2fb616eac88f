"""For tests of packages: a shell in a sandbox, and wheels and projects to install there."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

from wasmsand import Sandbox

SITE = "/usr/lib/python3.14/site-packages"


class Guest:
    """Runs commands in a sandbox and checks how they end."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.errors = ""
        """What the last command printed to standard error."""

    def run(self, command: str, exit_code: int = 0) -> str:
        """What a command prints to standard output."""
        result = self.sandbox.commands.run(command)
        self.errors = result.stderr
        assert result.exit_code == exit_code, (command, result.stdout, result.stderr)
        return result.stdout

    def lines(self, command: str, exit_code: int = 0) -> list[str]:
        """The lines that a command prints."""
        return self.run(command, exit_code).splitlines()

    def installed(self) -> list[str]:
        """What `pip freeze` lists, without versions."""
        return [line.partition("==")[0] for line in self.lines("pip freeze")]

    def python(self, program: str) -> str:
        """What a Python program prints."""
        self.sandbox.files.write("/home/user/program.py", program)
        return self.run("python3 program.py")

    def write_wheel(
        self,
        name: str,
        version: str,
        requires: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
        commands: Sequence[str] = (),
    ) -> str:
        """A wheel in the home directory; returns its file name."""
        stem = f"{name.replace('-', '_')}-{version}"
        info = f"{stem}.dist-info"
        content = dict(files or {f"{name.replace('-', '_')}/__init__.py": f"version = '{version}'"})
        needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
        content[f"{info}/METADATA"] = (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
        )
        content[f"{info}/WHEEL"] = (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        if commands:
            points = "".join(f"{command}\n" for command in commands)
            content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{points}"
        record = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"])
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for path, text in {**content, f"{info}/RECORD": record}.items():
                archive.writestr(path, text)
        file = f"{stem}-py3-none-any.whl"
        self.sandbox.files.write(f"/home/user/{file}", packed.getvalue())
        return file
