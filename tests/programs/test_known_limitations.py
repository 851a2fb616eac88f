"""Evidence for rows of docs/limitations.md that only programs can show."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.xfail(reason="L008: a locale has no formats of its own")
def test_numbers_are_printed_as_the_locale_wants() -> None:
    with Sandbox() as sandbox:
        result = sandbox.commands.run("LC_ALL=de_DE.UTF-8 printf '%.1f\\n' 1,5")
    assert result.stdout == "1,5\n"


@pytest.mark.xfail(reason="L014: programs that are not in the image yet", strict=True)
@pytest.mark.parametrize("name", ["perl", "python3", "cc", "strace"])
def test_a_program_is_there(name: str) -> None:
    with Sandbox() as sandbox:
        assert sandbox.commands.run(f"command -v {name}").exit_code == 0


@pytest.mark.xfail(reason="L017: there is no /sys", strict=True)
def test_the_system_shows_its_parts_in_sys() -> None:
    with Sandbox() as sandbox:
        assert sandbox.files.exists("/sys/kernel")
