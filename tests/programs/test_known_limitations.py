"""Evidence for rows of docs/limitations.md that only programs can show."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.xfail(reason="L008: a locale has no formats of its own")
def test_numbers_are_printed_as_the_locale_wants() -> None:
    with Sandbox() as sandbox:
        result = sandbox.commands.run("LC_ALL=de_DE.UTF-8 printf '%.1f\\n' 1,5")
    assert result.stdout == "1,5\n"
