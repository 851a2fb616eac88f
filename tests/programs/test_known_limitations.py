"""Evidence for rows of docs/limitations.md that only programs can show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.compiling import compiled
from wasmsand import Sandbox

_JUMPS_OUT_OF_ITS_FAULT = """
#include <setjmp.h>
#include <signal.h>
static sigjmp_buf again;
static void caught(int signal) { siglongjmp(again, 1); }
int main(void)
{
	if (sigsetjmp(again, 1)) return 7;
	signal(SIGSEGV, caught);
	*(volatile char *)-1 = 0;
	return 0;
}
"""


@pytest.mark.xfail(reason="L008: a locale has no formats of its own")
def test_numbers_are_printed_as_the_locale_wants() -> None:
    with Sandbox() as sandbox:
        result = sandbox.commands.run("LC_ALL=de_DE.UTF-8 printf '%.1f\\n' 1,5")
    assert result.stdout == "1,5\n"


@pytest.mark.xfail(reason="L014: programs that are not in the image yet", strict=True)
@pytest.mark.parametrize("name", ["perl", "cc", "strace"])
def test_a_missing_program_exists(name: str) -> None:
    with Sandbox() as sandbox:
        assert sandbox.commands.run(f"command -v {name}").exit_code == 0


@pytest.mark.xfail(reason="L017: there is no /sys", strict=True)
def test_sys_shows_the_system() -> None:
    with Sandbox() as sandbox:
        assert sandbox.files.exists("/sys/kernel")


@pytest.mark.xfail(reason="L024: a program cannot continue after a fault", strict=True)
def test_a_program_can_go_on_after_its_own_fault(sysroot: Path, tmp_path: Path) -> None:
    source = tmp_path / "fault.c"
    source.write_text(_JUMPS_OUT_OF_ITS_FAULT, encoding="utf-8")
    with Sandbox() as sandbox:
        sandbox.files.write("fault", compiled([source], sysroot, tmp_path))
        assert sandbox.commands.run("chmod +x fault; ./fault").exit_code == 7


@pytest.mark.xfail(
    reason="L115: host names with letters outside ASCII are not converted", strict=True
)
def test_curl_converts_international_names() -> None:
    with Sandbox() as sandbox:
        result = sandbox.commands.run(
            "curl -sv http://b\N{LATIN SMALL LETTER U WITH DIAERESIS}.example/"
        )
    assert "xn--b-xga.example" in result.stderr


@pytest.mark.xfail(reason="L116: there is no ICMP", strict=True)
def test_ping_reaches_the_sandbox_itself() -> None:
    with Sandbox() as sandbox:
        assert sandbox.commands.run("ping -c 1 127.0.0.1").exit_code == 0
