"""The documentation site: its code runs, and it can be built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import python_blocks, run_document
from wasmsand.machine.image import image_directories
from wasmsand.sdk.errors import ImageMissingError
from wasmsand.v86.image import find_image

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [
    page
    for page in (
        DOCS / "index.md",
        DOCS / "quickstart.md",
        DOCS / "cookbook.md",
        DOCS / "python.md",
        *sorted((DOCS / "guides").glob("*.md")),
    )
    # The code of the guide to fleets runs in tests/fleet/on_a_cluster.
    if python_blocks(page.read_text(encoding="utf-8")) and page.stem != "fleet"
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_and_its_values_are_true(page: Path) -> None:
    if 'packages=["pandas"]' in page.read_text("utf-8") and len(image_directories()) < 2:
        pytest.skip("the second stage is not built: make packages")
    if 'mode="v86"' in page.read_text("utf-8"):
        try:
            find_image()
        except ImageMissingError as missing:
            pytest.skip(str(missing))
    assert run_document(page) > 0


@pytest.mark.no_userland
def test_every_option_that_the_guide_to_mcp_names_is_there() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "wasmsand", "mcp", "--help"], capture_output=True, text=True
    ).stdout
    for option in ("--http", "--timeout", "--fs-limit", "--memory-limit", "--env", "--wasm-dir"):
        assert option in shown
    assert "--output-limit" in shown
    assert "--idle-timeout" in shown
    assert "--max-sessions" in shown


@pytest.mark.no_userland
def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="pip install 'wasmsand[docs]'")
    pytest.importorskip("mkdocstrings", reason="pip install 'wasmsand[docs]'")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=DOCS.parent,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "reference" / "sandbox" / "index.html").read_text(encoding="utf-8")
    assert 'id="wasmsand.sdk.files.Files.upload"' in page
    assert "Example:" not in page
