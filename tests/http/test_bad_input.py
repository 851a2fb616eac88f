"""The documentation shows the table of `bad_input.py`."""

from __future__ import annotations

from pathlib import Path

from tests.http.bad_input import answers, markdown_row

_BEGIN, _END = "<!-- bad-input:begin -->\n", "<!-- bad-input:end -->"


def test_the_documentation_shows_what_a_client_sees(repository: Path) -> None:
    text = (repository / "docs/protocols/http.md").read_text(encoding="utf-8")
    documented = text.partition(_BEGIN)[2].partition(_END)[0].strip().splitlines()[2:]
    seen = [markdown_row(wrong, answer) for wrong, answer in answers()]
    assert seen == documented, "run `python -m tests.http.bad_input` and copy its table"
