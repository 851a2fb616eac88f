"""Fetches from a Debian archive with the machine's apt, but with a private state.

Owns the private apt state in the cache. Rules: mirror, proxy and credentials are those of the
machine's configuration; the machine's apt configuration, package lists and cache are read, never
written; only the tarball is fetched from the pool, because the other files of a source package
change with every Debian revision.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from userland.builder.commands import Commands
from userland.builder.errors import MissingTool, NoNetwork, SourceVanished
from userland.builder.recipe import Source

MIRROR_VARIABLE = "WASMSAND_DEBIAN_MIRROR"
ARCHIVE_VARIABLE = "WASMSAND_DEBIAN_ARCHIVE"
_ARCHIVE = "https://snapshot.debian.org/archive/debian/20261101T000000Z"
"""Debian's archive at the time the recipes were pinned; it is kept permanently."""
_APT_HELPER = Path("/usr/lib/apt/apt-helper")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_RELEASES = ("bookworm", "trixie", "forky", "sid", "stable", "testing", "unstable")
_NOT_FOUND = ("404", "File not found", "Not Found")


class DebianArchive:
    """A Debian mirror, accessed through apt."""

    def __init__(self, state: Path, commands: Commands) -> None:
        self._state = state
        self._commands = commands

    def places(self, source: Source) -> Iterator[tuple[str, Callable[[Path], None]]]:
        """The places to look for a source's tarball, in order.

        Each is a name and a function that puts the file at a path or raises a `FetchError`. The
        caller checks the content.
        """
        yield "the Debian archive", lambda target: self._fetch(source, target)
        archive = os.environ.get(ARCHIVE_VARIABLE, _ARCHIVE).rstrip("/")
        old = (f"{archive}/{_pool_path(source)}",) if archive else ()
        for address in (*source.upstream, *old):
            yield address, partial(self._fetch_from, address, source)

    def fetch_together(self, wanted: Sequence[tuple[Source, Path]]) -> None:
        """Fetch several files with one command, each to its path. A file that cannot be fetched
        so is missing afterwards. The caller checks the contents."""
        mirror = self._mirror()
        self._write_configuration(mirror, wanted[0][0])
        words: list[str | Path] = []
        for source, target in wanted:
            # An empty hash: the caller checks.
            words += [f"{mirror}/{_pool_path(source)}", target, ""]
        self._apt(_APT_HELPER, "download-file", *words)

    def _fetch_from(self, address: str, source: Source, target: Path) -> None:
        self._write_configuration(self._mirror(), source)
        if problem := self._download(address, target):
            gone = any(sign in problem for sign in _NOT_FOUND)
            raise (SourceVanished if gone else NoNetwork)(f"{address}:\n{problem}")

    def _fetch(self, source: Source, target: Path) -> None:
        if shutil.which("apt-get") is None or not _APT_HELPER.exists():
            raise MissingTool(
                "apt is not installed, but the builder needs it to fetch sources",
                "Build on Debian or Ubuntu (a container is enough), or install a wheel of "
                "wasmsand, which carries the built programs.",
            )
        mirror = self._mirror()
        self._write_configuration(mirror, source)
        problem = self._download(f"{mirror}/{_pool_path(source)}", target)
        if not problem:
            return
        if not any(sign in problem for sign in _NOT_FOUND):
            raise NoNetwork(
                f"{source.file} could not be fetched from the Debian mirror {mirror}:\n{problem}",
                f"Check the network and apt's proxy settings, or set {MIRROR_VARIABLE} to a "
                "Debian mirror that can be reached. Sources that were fetched before are kept.",
            )
        self._search_index(mirror, source, target)

    def _search_index(self, mirror: str, source: Source, target: Path) -> None:
        """Look in the archive's index, if the file is not in the package pool."""
        versions = []
        for stanza in self._stanzas(mirror, source):
            uri = f"{mirror}/{stanza.get('Directory')}/{source.file}"
            known = source.sha256 in stanza.get("Checksums-Sha256", "")
            if known and not self._download(uri, target):
                return
            versions.append(stanza.get("Version", "?"))
        raise SourceVanished(
            f"the Debian archive has no {source.file} any more; of {source.package} it has: "
            + (", ".join(versions) or "nothing"),
            f"Set {MIRROR_VARIABLE} to a mirror that still has it, or move the recipe to a version "
            "named above: version, file and sha256 change together.",
        )

    def _stanzas(self, mirror: str, source: Source) -> list[dict[str, str]]:
        if not _KEYRING.exists():
            raise MissingTool(
                f"{_KEYRING} does not exist, so the archive's index cannot be checked",
                "Install the package debian-archive-keyring.",
            )
        status, printed = self._apt("apt-get", "update")
        if status != 0:
            raise NoNetwork(
                f"the index of the Debian mirror {mirror} could not be read:\n{printed}",
                f"Check the network, or set {MIRROR_VARIABLE} to another Debian mirror.",
            )
        _, printed = self._apt("apt-cache", "showsrc", "--only-source", source.package)
        return [_fields(stanza) for stanza in printed.split("\n\n") if "Package:" in stanza]

    def _download(self, uri: str, target: Path) -> str:
        """Download a file; returns the problem, or an empty string."""
        status, printed = self._apt(_APT_HELPER, "download-file", uri, target)
        if status != 0:
            errors = [line for line in printed.splitlines() if line.startswith("E:")]
            return "\n".join(f"  {line}" for line in errors or printed.splitlines())
        if target.is_symlink():
            # If the mirror is a local directory, apt makes a link instead of a copy.
            real = target.resolve()
            target.unlink()
            shutil.copyfile(real, target)
        return ""

    def _apt(self, *argv: str | Path) -> tuple[int, str]:
        env = dict(os.environ, APT_CONFIG=str(self._state / "apt.conf"), LC_ALL="C")
        return self._commands.capture(argv, env=env)

    def _mirror(self) -> str:
        if chosen := os.environ.get(MIRROR_VARIABLE):
            return chosen.rstrip("/")
        # It reads all package lists, which takes half a second.
        _, printed = self._commands.capture_once(
            ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"]
        )
        for line in printed.splitlines():
            uri, _, release = line.partition(" ")
            if release in _RELEASES:
                return uri.rstrip("/")
        raise MissingTool(
            "apt on this machine has no Debian mirror configured",
            f"Set {MIRROR_VARIABLE} to the address of one (it ends in /debian).",
        )

    def _write_configuration(self, mirror: str, source: Source) -> None:
        etc = self._state / "etc"
        for folder in ("etc/apt.conf.d", "state/lists/partial", "cache/archives/partial"):
            (self._state / folder).mkdir(parents=True, exist_ok=True)
        options = {
            "Dir::Etc": etc,
            "Dir::State": self._state / "state",
            "Dir::Cache": self._state / "cache",
            "Dir::Etc::netrc": "/etc/apt/auth.conf",
            "Dir::Etc::netrcparts": "/etc/apt/auth.conf.d",
            # The files belong to us, not to apt's own user.
            "APT::Sandbox::User": "root",
        }
        lines = self._machine_settings()
        lines += [f"{name} {json.dumps(str(value))};" for name, value in options.items()]
        _replace(self._state / "apt.conf", lines)
        _replace(
            etc / "sources.list",
            [f"deb-src [signed-by={_KEYRING}] {mirror} {suite} main" for suite in source.suites],
        )

    def _machine_settings(self) -> list[str]:
        """The machine's settings for archives: proxies, time-outs, validity checks."""
        _, printed = self._commands.capture_once(["apt-config", "dump"])
        return [
            line
            for line in printed.splitlines()
            if line.startswith("Acquire::") and not line.startswith("Acquire::IndexTargets")
        ]


def _pool_path(source: Source) -> str:
    name = source.package
    shelf = name[:4] if name.startswith("lib") else name[0]
    return f"pool/main/{shelf}/{name}/{source.file}"


def _fields(stanza: str) -> dict[str, str]:
    """The fields of a control stanza, with their continuation lines."""
    fields: dict[str, str] = {}
    current = ""
    for line in stanza.splitlines():
        if line.startswith(" "):
            fields[current] = fields.get(current, "") + "\n" + line
        else:
            current, _, value = line.partition(":")
            fields[current] = value.strip()
    return fields


def _replace(file: Path, lines: list[str]) -> None:
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    temporary.replace(file)
