"""A package index on loopback, with wheels that tests make."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def make_wheel(
    directory: Path,
    name: str,
    version: str = "1.0",
    *,
    files: Mapping[str, str | bytes] | None = None,
    requires: tuple[str, ...] = (),
    entry_points: str = "",
    tag: str = "py3-none-any",
    metadata: str | None = None,
) -> Path:
    """Write a wheel with a module of its own name, or with `files`."""
    module = name.replace("-", "_").replace(".", "_")
    info = f"{module}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {name}!"]
    lines += [f"Requires-Dist: {needed}" for needed in requires]
    path = directory / f"{module}-{version}-{tag}.whl"
    directory.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in (files or {f"{module}.py": f"version = {version!r}\n"}).items():
            archive.writestr(file, content)
        archive.writestr(f"{info}/METADATA", metadata or "\n".join([*lines, ""]))
        pure = str(tag.endswith("none-any")).lower()
        archive.writestr(
            f"{info}/WHEEL",
            f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: {pure}\nTag: {tag}\n",
        )
        if entry_points:
            archive.writestr(f"{info}/entry_points.txt", entry_points)
        archive.writestr(f"{info}/RECORD", "")
    return path


def write_pages(root: Path, *, has_hashes: bool = True) -> None:
    """Write the pages of PEP 503 for the files in `root/files/PROJECT`."""
    simple = root / "simple"
    projects = sorted(path for path in (root / "files").iterdir() if path.is_dir())
    for project in projects:
        links = []
        for file in sorted(project.iterdir()):
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            fragment = f"#sha256={digest}" if has_hashes else ""
            address = f"../../files/{project.name}/{file.name}{fragment}"
            links.append(f'<a href="{address}">{file.name}</a><br>')
        (simple / project.name).mkdir(parents=True, exist_ok=True)
        page = "<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>"
        (simple / project.name / "index.html").write_text(page)


@contextmanager
def served(root: Path) -> Iterator[str]:
    """Serve a directory on loopback; yields the address of the index."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/simple/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
