"""Fetching sources from Python package indexes: directories, and a server of this machine."""

from __future__ import annotations

import base64
import io
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.userland.conftest import World
from userland.builder.commands import Commands
from userland.builder.errors import (
    BuildError,
    FetchError,
    HashMismatch,
    Interrupted,
    NoNetwork,
    SourceVanished,
)
from userland.builder.keys import file_digest
from userland.builder.recipe import Source
from userland.builder.sources import fetch, unpack

FILE = "Some_Project-1.0.tar.gz"
CONTENT = b"a tarball"


@pytest.fixture(autouse=True)
def no_pip_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of this machine: each test makes its own."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("FIND_LINKS", "INDEX_URL", "EXTRA_INDEX_URL", "NO_INDEX", "CERT"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)


def index_in(folder: Path, href: str = f"../../files/{FILE}#sha256=0") -> Path:
    """A simple index with one project and its file; returns the index's directory."""
    (folder / "files").mkdir(parents=True)
    (folder / "files" / FILE).write_bytes(CONTENT)
    page = folder / "simple/some-project/index.html"
    page.parent.mkdir(parents=True)
    page.write_text(
        f'<!DOCTYPE html><a href="../../files/other.whl">other.whl</a>\n<a href="{href}">{FILE}</a>'
    )
    return folder / "simple"


def source_of(tmp_path: Path, **changes: object) -> Source:
    right = tmp_path / "right"
    right.write_bytes(CONTENT)
    fields: dict[str, object] = {"file": FILE, "sha256": file_digest(right), **changes}
    return Source(package="", suites=(), pypi="Some.Project", **fields)  # type: ignore[arg-type]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, str, list[str | None]]]:
    """A directory, its address, and the logins that were sent with requests."""
    folder = tmp_path / "served"
    folder.mkdir()
    logins: list[str | None] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            logins.append(self.headers["Authorization"])

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield folder, f"127.0.0.1:{running.server_address[1]}", logins
        running.shutdown()
        thread.join()


def test_file_comes_from_the_index_of_pips_environment(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index_in(tmp_path / "index").as_uri())
    source = source_of(tmp_path)
    stored = fetch(source, world.cache, Commands())
    assert stored == world.cache.sources / source.sha256 / FILE
    assert stored.read_bytes() == CONTENT


def test_file_comes_from_a_further_index_of_pips_configuration_file(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    settings = tmp_path / "pip.conf"
    further = index_in(tmp_path / "index").as_uri()
    settings.write_text(
        f"[global]\nindex-url = {empty.as_uri()}\n"
        f"extra-index-url =\n    {tmp_path.as_uri()}/none\n    {further}\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    assert fetch(source_of(tmp_path), world.cache, Commands()).is_file()


def test_file_comes_over_http_with_the_login_of_the_index(
    world: World,
    tmp_path: Path,
    server: tuple[Path, str, list[str | None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, address, logins = server
    index_in(folder / "pypi", f"http://{address}/pypi/files/{FILE}")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:se%2Fcret@{address}/pypi/simple/")
    assert fetch(source_of(tmp_path), world.cache, Commands()).read_bytes() == CONTENT
    assert set(logins) == {"Basic " + base64.b64encode(b"me:se/cret").decode()}


def test_directory_of_find_links_needs_no_index(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_in(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index/files"))
    assert fetch(source_of(tmp_path), world.cache, Commands()).is_file()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(FetchError, match="no place to fetch it from") as caught:
        fetch(source_of(tmp_path, sha256="0" * 64), world.cache, Commands())
    assert "no-index" in caught.value.advice


def test_wrong_content_is_told_with_the_project_and_not_kept(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index_in(tmp_path / "index").as_uri())
    with pytest.raises(HashMismatch, match=r"PyPI project Some.Project\) has the wrong content"):
        fetch(source_of(tmp_path, sha256="0" * 64), world.cache, Commands())
    assert list(world.cache.sources.iterdir()) == []


def test_file_that_no_index_lists_comes_from_upstream(
    world: World,
    tmp_path: Path,
    server: tuple[Path, str, list[str | None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, address, _ = server
    (folder / "again.tar.gz").write_bytes(CONTENT)
    monkeypatch.setenv("PIP_INDEX_URL", index_in(tmp_path / "index", "other-2.0.zip").as_uri())
    upstream = (f"http://{address}/gone", f"http://{address}/again.tar.gz")
    source = source_of(tmp_path, upstream=upstream)
    assert fetch(source, world.cache, Commands()).name == FILE


def test_file_that_is_nowhere_is_told_with_all_places_and_no_password(
    world: World,
    tmp_path: Path,
    server: tuple[Path, str, list[str | None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, address, _ = server
    index_in(folder / "pypi", "other-2.0.zip")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:secret@{address}/pypi/simple")
    source = source_of(tmp_path, upstream=(f"http://{address}/gone",))
    with pytest.raises(SourceVanished, match=f"some-project/ does not list {FILE}") as caught:
        fetch(source, world.cache, Commands())
    assert f"http://{address}/gone" in caught.value.advice
    assert "secret" not in str(caught.value) + caught.value.advice


def test_index_that_does_not_answer_is_no_network(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(NoNetwork, match=r"127\.0\.0\.1:9") as caught:
        fetch(source_of(tmp_path), world.cache, Commands())
    assert "PIP_INDEX_URL" in caught.value.advice


def test_stopped_builder_asks_no_index(world: World, tmp_path: Path) -> None:
    commands = Commands()
    commands.stop()
    with pytest.raises(Interrupted):
        fetch(source_of(tmp_path), world.cache, commands)


def test_wheel_is_unpacked_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    wheel = tmp_path / "tool-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tool/__init__.py", "")
        archive.writestr("tool-1.0.dist-info/METADATA", "Name: tool\n")
    tree = unpack(wheel, tmp_path / "out", Commands(), io.BytesIO())
    assert sorted(path.name for path in tree.iterdir()) == ["tool", "tool-1.0.dist-info"]
    wheel.write_bytes(b"damaged")
    with pytest.raises(BuildError, match="could not be unpacked"):
        unpack(wheel, tmp_path / "again", Commands(), io.BytesIO())
