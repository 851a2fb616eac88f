"""Time zones by their names."""

from __future__ import annotations

from userland.recipes.script_tables import prints
from wasmsand import Sandbox

test_local_time = prints(
    ("TZ=Europe/Berlin date -d @0 +'%F %T %Z %z'", "1970-01-01 01:00:00 CET +0100\n"),
    ("TZ=Europe/Berlin date -d @1720000000 +%Z%z", "CEST+0200\n"),
    ("TZ=America/New_York date -d @1720000000 +%Z%z", "EDT-0400\n"),
    ("TZ=US/Eastern date -d @1720000000 +%Z%z", "EDT-0400\n"),
    ("TZ=Asia/Kolkata date -d @1720000000 +%z", "+0530\n"),
    ("TZ=America/Indiana/Indianapolis date -d @1720000000 +%Z", "EDT\n"),
    ("TZ=:Asia/Tokyo date -d @1720000000 +%Z", "JST\n"),
    ("date -d @0 +%Z", "UTC\n"),
    ("date -d 'TZ=\"Europe/Paris\" 2024-07-01 12:00' +%s", "1719828000\n"),
    # Rules reach past the table.
    ("TZ=Europe/Berlin date -d @4118000000 +%Z", "CEST\n"),
    ("TZ=Europe/Berlin awk 'BEGIN { print strftime(\"%H:%M %Z\", 0) }'", "01:00 CET\n"),
    ("TZ=Europe/Berlin bash -c \"printf '%(%H %Z)T\\n' 0\"", "01 CET\n"),
    ("TZ=Not/Azone date -d @0 +%H", "00\n"),
)


def test_the_files_that_programs_look_for(sandbox: Sandbox) -> None:
    script = """
    cd /usr/share/zoneinfo
    head -c 4 Europe/Berlin; echo; readlink US/Eastern
    grep -c Europe/ zone.tab; grep -h '^DE' iso3166.tab; head -n 1 tzdata.zi
    find . -name '[A-Z]*' -type f | while read -r f; do head -c 4 "$f"; echo; done | sort -u
    """
    lines = sandbox.commands.run(script).stdout.splitlines()
    assert lines[:2] == ["TZif", "../America/New_York"]
    assert int(lines[2]) > 40
    assert lines[3:] == ["DE\tGermany", "# version 2026c", "TZif"]
