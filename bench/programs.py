"""Programs that work on data of a realistic size.

Rules: both sides run the same script on the same files, and must print the same; the native
programs are the reference builds of the recipes, so that versions, options and compilers do not
differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench import data
from bench.sides import Script, ScriptFailed, Side


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One script that runs a program: from the call until its output is collected."""

    name: str
    needs: str
    """The recipe that builds the program."""
    script: Script
    rounds: int
    setup: Callable[[Side], None]

    def prepare(self, side: Side) -> None:
        self.setup(side)
        side.run(self.script)

    def measure(self, side: Side) -> float | None:
        return side.run(self.script)

    def check(self, sides: tuple[Side, ...]) -> None:
        """Raise `ScriptFailed` unless all sides print the same."""
        printed = {side.output(self.script) for side in sides}
        if len(printed) != 1:
            raise ScriptFailed(f"{self.script!r} prints different output on the two sides")


def _log(side: Side) -> None:
    side.write("log", data.log())


def _records(side: Side) -> None:
    side.write("records.json", data.records())


def _project(side: Side) -> None:
    for name, content in data.sources().items():
        side.write(f"project/{name}", content)


def _compressed(side: Side) -> None:
    _log(side)
    side.run("head -n 100000 log > part; gzip -k -f part; xz -k -f -1 part")


def _packed(side: Side) -> None:
    _project(side)
    side.run("tar -cf project.tar project")


def _rows(side: Side) -> None:
    side.write("rows.csv", data.rows())
    side.run(f"{_IMPORT}; mv imported.db rows.db")


def _repository(side: Side) -> None:
    side.write("history", data.history())
    side.run(
        "rm -rf repository; git init -q -b main repository; cd repository; "
        "git fast-import --quiet < ../history; git reset -q --hard; "
        "echo change >> src/part00/module0/file0000.c; touch src/part01/new"
    )


_IMPORT = (
    "rm -f imported.db; sqlite3 imported.db 'CREATE TABLE rows(id INTEGER PRIMARY KEY, name, city, "
    "amount INTEGER, score REAL)' '.import --csv --skip 1 rows.csv rows'"
)
_AGGREGATE = (
    "SELECT city, count(*), sum(amount), round(avg(score), 3), max(name) FROM rows "
    "GROUP BY city ORDER BY 3; SELECT count(*) FROM rows a JOIN rows b ON b.id = a.amount % 100000"
)
_SUMS = "{ bytes[$2] += substr($7, 7) } END { for (k in bytes) print k, bytes[k] }"
_REPORT = (
    '/status=5/ { split($8, t, "="); match($9, /[a-z]+$/); k = substr($9, RSTART); n[k]++; '
    'sum[k] += t[2] } END { for (k in n) printf "%-8s %6d %8.2f\\n", k, n[k], sum[k] / n[k] }'
)
_JQ = (
    "[.[] | select(.age > 40 and .active) | {city, balance}] | group_by(.city) "
    "| map({city: .[0].city, n: length, total: (map(.balance) | add)})"
)
_PLAN: tuple[tuple[str, str, str, Callable[[Side], None]], ...] = (
    ("grep a word in 44 MB", "grep", "grep -c 'user=judy' log", _log),
    (
        "grep -E in 44 MB",
        "grep",
        "grep -cE '(GET|POST) /api/v[12]/users/[0-9]+7 status=50[03]' log",
        _log,
    ),
    ("grep -i in 44 MB", "grep", "grep -ci 'USER=Judy' log", _log),
    ("grep -P in 44 MB", "grep", r"grep -cP 'status=5\d\d (?=.*user=(?!eve)\w+)' log", _log),
    ("grep -r in 2,000 files", "grep", "grep -rn 'queue token' project | wc -l", _project),
    ("awk, sums by field, 44 MB", "gawk", f"awk '{_SUMS}' log | sort", _log),
    ("awk, a report of 44 MB", "gawk", f"awk '{_REPORT}' log | sort", _log),
    ("sed s///g over 44 MB", "sed", r"sed -E 's/user=([a-z]+)/<\1>/g' log | tail -n 1", _log),
    ("sort -k of 44 MB", "coreutils", "sort --parallel=1 -t= -k4,4 -k3,3n log | tail -n 1", _log),
    ("wc of 44 MB", "coreutils", "wc log", _log),
    ("cut and uniq of 44 MB", "coreutils", "cut -d' ' -f2 log | sort --parallel=1 | uniq -c", _log),
    ("jq, a report of 10 MB", "jq", f"jq -c '{_JQ}' records.json", _records),
    ("gzip -6 of 11 MB", "gzip", "gzip -6 -c part | wc -c", _compressed),
    ("gzip -d to 11 MB", "gzip", "gzip -dc part.gz | wc -c", _compressed),
    ("xz -1 of 11 MB", "xz", "xz -1 -T1 -c part | wc -c", _compressed),
    ("xz -d to 11 MB", "xz", "xz -dc part.xz | wc -c", _compressed),
    ("tar c of 2,000 files", "tar", "tar -cf - project | wc -c > out", _project),
    ("tar x of 2,000 files", "tar", "rm -rf x; mkdir x; tar -xf project.tar -C x", _packed),
    ("find in 2,000 files", "findutils", "find project -name '*.c' -size +2k | wc -l", _project),
    ("sqlite3, import 100,000 rows", "sqlite3", _IMPORT, _rows),
    ("sqlite3, aggregate and join", "sqlite3", f"sqlite3 rows.db '{_AGGREGATE}'", _rows),
    ("git status of 2,000 files", "git", "cd repository; git status --short", _repository),
    ("git log of 1,000 commits", "git", "cd repository; git log --stat | tail -n 3", _repository),
    ("git diff of a change", "git", "cd repository; git diff", _repository),
)


def program_cases(rounds: int) -> list[ProgramRun]:
    """Every case, measured `rounds` times."""
    return [
        ProgramRun(name, recipe, script, rounds, setup) for name, recipe, script, setup in _PLAN
    ]
