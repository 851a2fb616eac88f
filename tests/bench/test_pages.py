"""The tables that `make bench` renews."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import pages
from bench.renew import STEPS, Step


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.mark)
def test_every_page_has_a_place_for_its_table(step: Step) -> None:
    mark, page = step.mark, step.page
    text = (pages.ROOT / page).read_text("utf-8")
    assert text.count(f"<!-- {mark}:begin -->") == 1
    assert text.count(f"<!-- {mark}:end -->") == 1
    assert text.index(f"<!-- {mark}:begin -->") < text.index(f"<!-- {mark}:end -->")


def test_renew_replaces_only_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x:begin -->\nold\n<!-- x:end -->\nafter\n")
    pages.renew("page.md", "x", "new")
    pages.renew("page.md", "x", "newer")
    assert page.read_text() == ("before\n<!-- x:begin -->\n\nnewer\n\n<!-- x:end -->\nafter\n")


def test_renew_refuses_a_page_without_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("<!-- x:end --> <!-- x:begin -->")
    with pytest.raises(SystemExit, match="no table"):
        pages.renew("page.md", "x", "new")
    assert (tmp_path / "page.md").read_text() == "<!-- x:end --> <!-- x:begin -->"
