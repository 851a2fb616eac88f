"""The C library, as seen through programs linked with it."""

from __future__ import annotations

from wasmsand import Sandbox


def test_numbers_are_printed_and_read_with_full_precision(sandbox: Sandbox) -> None:
    # long double has 113 bits here, so 0.1 is exact to 34 digits.
    result = sandbox.commands.run("printf '%.33f %x %s\\n' 0.1 255 end; seq 0.1 0.1 0.3")
    assert result.stdout == "0.100000000000000000000000000000000 ff end\n0.1\n0.2\n0.3\n"


def test_times_before_1970_and_after_2038_are_right(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("TZ=UTC date -d @-86400 +%F; TZ=UTC date -d @4102444800 +%F")
    assert result.stdout == "1969-12-31\n2100-01-01\n"


def test_time_zone_rules_are_understood(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("TZ=CET-1CEST,M3.5.0,M10.5.0/3 date -d @1751364000 '+%H:%M %Z'")
    assert result.stdout == "12:00 CEST\n"


def test_a_collating_element_of_one_character_is_that_character(sandbox: Sandbox) -> None:
    script = """
        [[ xdog =~ [[=d=]]o. ]] && echo "${BASH_REMATCH[0]}"
        [[ a-b =~ ^[[.a.]-c][[.-.]][^[=a=]]$ ]] && echo "${BASH_REMATCH[0]}"
        [[ d =~ [[.dd.]] ]] || echo $?
    """
    result = sandbox.commands.run(script)
    assert result.stdout == "dog\na-b\n2\n"
