"""Fetching files of Python projects from package indexes, as pip is configured.

Owns the look-up in simple indexes (PEP 503, HTML) and the downloads from them. Rules: the
indexes, directories of files and certificates are those of pip's own configuration, files and
environment alike; pip itself is asked for its settings only, because its `download` would run the
build system of a source distribution; the caller checks the content.
"""

from __future__ import annotations

import ast
import base64
import re
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import IO
from urllib.parse import SplitResult, unquote, urljoin, urlsplit, urlunsplit

from userland.builder.commands import Commands
from userland.builder.errors import FetchError, Interrupted, NoNetwork, SourceVanished
from userland.builder.recipe import Source

_PYPI = "https://pypi.org/simple"
_TIMEOUT_SECONDS = 60
_PIECE_BYTES = 1 << 20
_NOT_FOUND = (404, 410)
_ADVICE = (
    "Check the network, and the index that pip is configured with (`pip config list`, "
    "PIP_INDEX_URL). Sources fetched before are kept."
)


class PythonIndexes:
    """All places where pip would look for a file."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._settings = _pip_settings(commands)

    def places(self, source: Source) -> Iterator[tuple[str, Callable[[Path], None]]]:
        """Where to look for a source's file, in order: a name, and what puts the file at a path or
        raises a `FetchError`. The content is for the caller to check."""
        for folder in self._words("find-links"):
            place = Path(folder.removeprefix("file://"))
            if (place / source.file).is_file():
                yield folder, partial(self._download, (place / source.file).absolute().as_uri())
        for index in self._indexes():
            yield _without_password(index), partial(self._fetch, index, source)
        for address in source.upstream:
            yield address, partial(self._download, address)

    def _indexes(self) -> list[str]:
        if self._settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
            return []
        first = self._words("index-url") or [_PYPI]
        # Local directories first: they cost nothing to ask.
        return sorted([*first, *self._words("extra-index-url")], key=_is_remote)

    def _words(self, setting: str) -> list[str]:
        return self._settings.get(setting, "").split()

    def _fetch(self, index: str, source: Source, target: Path) -> None:
        """Find the file on the project's page, and download it."""
        page = f"{index.rstrip('/')}/{_normalised(source.pypi)}/"
        with self._open(page) as stream:
            links = _links(stream.read().decode(errors="replace"), page)
        if source.file not in links:
            raise SourceVanished(
                f"{_without_password(page)} does not list {source.file}",
                "Configure pip with an index that has it, or move the recipe to another version: "
                "version, file and sha256 change together.",
            )
        self._download(_with_login_of(index, links[source.file]), target)

    def _download(self, address: str, target: Path) -> None:
        with self._open(address) as stream, target.open("wb") as out:
            while piece := stream.read(_PIECE_BYTES):
                if self._commands.stopped.is_set():
                    raise Interrupted
                out.write(piece)

    def _open(self, address: str) -> IO[bytes]:
        if self._commands.stopped.is_set():
            raise Interrupted
        shown = _without_password(address)
        if not _is_remote(address):
            return _open_local(address, shown)
        request = urllib.request.Request(_bare(urlsplit(address)), headers=_headers(address))
        try:
            return urllib.request.urlopen(  # type: ignore[no-any-return]  # a response
                request, timeout=_TIMEOUT_SECONDS, context=self._certificates()
            )
        except urllib.error.HTTPError as error:
            gone = error.code in _NOT_FOUND
            raise (SourceVanished if gone else NoNetwork)(f"{shown}: {error}", _ADVICE) from None
        except OSError as error:
            raise NoNetwork(f"{shown}: {error}", _ADVICE) from None

    def _certificates(self) -> ssl.SSLContext:
        bundle = self._settings.get("cert")
        try:
            return ssl.create_default_context(cafile=bundle)
        except OSError as error:
            raise FetchError(f"pip's setting `cert` names {bundle}: {error}") from None


def _pip_settings(commands: Commands) -> dict[str, str]:
    """What pip is configured with. Variables come before files, and what is set for `download`
    before what is set for all commands."""
    status, printed = commands.capture_once([sys.executable, "-m", "pip", "config", "list"])
    if status != 0:
        return {}
    found: dict[str, dict[str, str]] = {"global": {}, "download": {}, ":env:": {}}
    for line in printed.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in found and value:
            found[section][name] = str(ast.literal_eval(value))
    merged: Mapping[str, str] = found["global"] | found["download"] | found[":env:"]
    return dict(merged)


def _normalised(name: str) -> str:
    """A project's name as it is in the addresses of an index."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _links(text: str, page: str) -> dict[str, str]:
    """The addresses of all files on a project's page, by the file's name."""
    found: dict[str, str] = {}

    class Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            href = dict(attrs).get("href") if tag == "a" else None
            if href:
                address = urljoin(page, href).partition("#")[0]
                found.setdefault(unquote(urlsplit(address).path.rpartition("/")[2]), address)

    Anchors().feed(text)
    return found


def _open_local(address: str, shown: str) -> IO[bytes]:
    path = Path(unquote(urlsplit(address).path))
    try:
        return (path / "index.html" if path.is_dir() else path).open("rb")
    except FileNotFoundError:
        raise SourceVanished(f"{shown} does not exist") from None
    except OSError as error:
        raise FetchError(f"{shown}: {error}") from None


def _is_remote(address: str) -> bool:
    return not address.startswith("file:")


def _headers(address: str) -> dict[str, str]:
    parts = urlsplit(address)
    headers = {"Accept": "text/html, */*;q=0.1", "User-Agent": "wasmsand-build"}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    return headers


def _with_login_of(index: str, address: str) -> str:
    """The address with the index's login, if it is of the same host."""
    theirs, ours = urlsplit(index), urlsplit(address)
    if "@" not in theirs.netloc or "@" in ours.netloc or theirs.hostname != ours.hostname:
        return address
    login = theirs.netloc.rpartition("@")[0]
    return urlunsplit(ours._replace(netloc=f"{login}@{ours.netloc}"))


def _bare(parts: SplitResult) -> str:
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _without_password(address: str) -> str:
    """For messages: without a login, which may be secret."""
    return _bare(urlsplit(address))
