"""Tables in pages of the repository that benchmarks renew.

Owns `renew`. Rules: a table is between two comments, `<!-- NAME:begin -->` and `<!-- NAME:end -->`;
everything else in the page is left as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def renew(page: str, mark: str, table: str) -> None:
    """Replace the table with this name in a page."""
    path = ROOT / page
    text = path.read_text("utf-8")
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page} has no table between {begin} and {end}")
    path.write_text(f"{before}{begin}\n\n{table.strip()}\n\n{end}{after}", "utf-8")
