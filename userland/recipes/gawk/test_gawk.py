"""awk: programs, and the commands that they start."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("program", "stdout"),
    [
        ("{ n += $2 } END { print n }", "6\n"),
        ('{ a[$1] = $2 } END { for (k in a) print k, a[k] | "sort" }', "x 1\ny 2\nz 3\n"),
        ('BEGIN { "echo read" | getline line; print line }', "read\n"),
        ('BEGIN { print "written" | "cat" }', "written\n"),
        ('BEGIN { status = system("exit 3"); print status }', "3\n"),
        (
            'BEGIN { c = "tr a-z A-Z"; print "both ways" |& c; close(c, "to"); '
            "c |& getline x; print x }",
            "BOTH WAYS\n",
        ),
        ('BEGIN { printf "%.3f %d %s\\n", 3.14159, 42.9, toupper("é") }', "3.142 42 É\n"),
        ('BEGIN { print length(sprintf("%c", 8364)), substr("naïve", 3, 1) }', "1 ï\n"),
        (
            'BEGIN { printf "%x %x %d\\n", 2^40, 2^70, 2^64 }',
            "10000000000 1.18059e+21 18446744073709551616\n",
        ),
        ('{ print gensub(/(.) (.)/, "\\\\2\\\\1", 1) }', "1x\n2y\n3z\n"),
    ],
)
@pytest.mark.parametrize("name", ["awk", "gawk"])
def test_programs(sandbox: Sandbox, name: str, program: str, stdout: str) -> None:
    sandbox.files.write("data", "x 1\ny 2\nz 3\n")
    result = sandbox.commands.run([name, program, "data"], env={"LC_ALL": "C.UTF-8"})
    assert (result.stdout, result.stderr) == (stdout, "")
