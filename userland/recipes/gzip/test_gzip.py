"""gzip and its scripts: round trips, files kept or replaced, damage told."""

from __future__ import annotations

import gzip

from userland.recipes.compressors import check_agreement, run_on_full_disk
from userland.recipes.script_tables import fails, prints
from wasmsand import Sandbox


def test_a_file_is_replaced_and_comes_back_as_it_was(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        """
        seq 100000 > f; chmod 640 f; touch -d '2001-02-03 04:05:06.789' f
        sum=$(md5sum < f)
        gzip f; ls; stat -c '%a %y' f.gz; gzip -t f.gz && gunzip f.gz; ls
        stat -c '%a %y' f; [ "$(md5sum < f)" = "$sum" ] && echo same
        """
    )
    assert (result.stdout, result.stderr) == (
        "f.gz\n640 2001-02-03 04:05:06.789000000 +0000\nf\n"
        "640 2001-02-03 04:05:06.789000000 +0000\nsame\n",
        "",
    )


test_what_agents_write = prints(
    ("seq 3 | gzip | zcat", "1\n2\n3\n"),
    ("seq 3 | gzip -9n | gzip -dc | tail -n1", "3\n"),
    (
        "seq 3 > f; gzip -k f; gzip -c f > g.gz; ls; cat f.gz g.gz | zcat | wc -l",
        "f\nf.gz\ng.gz\n6\n",
    ),
    ("echo a > f; gzip -S .z f; ls; gzip -d -S .z f.z; ls", "f.z\nf\n"),
    ("mkdir d; seq 9 > d/f; gzip -r d; ls d; gunzip -r d; ls d", "f.gz\nf\n"),
    ("seq 1000 > f; gzip f; gzip -l f.gz | awk 'NR==2{print $2, $4}'", "3893 f\n"),
    ("echo abc > f; gzip -N f; mv f.gz g.gz; gunzip -N g.gz; cat f", "abc\n"),
    ("echo plain > f; zcat -f f", "plain\n"),
    ("printf 'a\\nbb\\n' > f; gzip -k f; zgrep -n b f.gz f", "f.gz:2:bb\nf:2:bb\n"),
    ("seq 3 | gzip > a.gz; seq 4 | gzip > b.gz; zdiff a.gz b.gz; echo $?", "3a4\n> 4\n1\n"),
    ("seq 3 | gzip > a.gz; seq 3 > b; zcmp a.gz b; echo $?", "0\n"),
    ("echo x | gzip > f; zforce f; ls", "f -- replaced with f.gz\nf.gz\n"),
    ("echo x | gzip -9 > f.gz; uncompress f.gz; cat f", "x\n"),
    ("printf 'a.b\\naxb\\n' | gzip > f.gz; zfgrep a.b f.gz; zegrep 'a(x)b' f.gz", "a.b\naxb\n"),
)


def test_the_host_reads_what_it_writes_and_the_reverse(sandbox: Sandbox) -> None:
    check_agreement(sandbox, "gzip -k f && gunzip g.gz", ".gz", gzip)


test_errors_are_told = fails(
    ("gunzip t.gz", 1, "\ngzip: t.gz: unexpected end of file\n"),
    ("gzip -t t.gz", 1, "\ngzip: t.gz: unexpected end of file\n"),
    ("gzip -t bad.gz", 1, "\ngzip: bad.gz: invalid compressed data--crc error\n"),
    ("gunzip plain.gz", 1, "\ngzip: plain.gz: not in gzip format\n"),
    ("gzip nosuch", 1, "gzip: nosuch: No such file or directory\n"),
    ("gzip plain.gz", 0, "gzip: plain.gz already has .gz suffix -- unchanged\n"),
    ("gzip -c f | head -c1 >/dev/null; exit ${PIPESTATUS[0]}", 141, ""),
    ("zgrep nothing f.gz", 1, ""),
    ("zgrep x nosuch.gz", 2, "gzip: nosuch.gz: No such file or directory\n"),
    setup="""
        head -c 1000000 /dev/urandom > f; gzip -k f; head -c 5000 f.gz > t.gz
        seq 1000 | gzip -n > bad.gz
        printf X | dd of=bad.gz bs=1 seek=$(($(stat -c %s bad.gz) - 8)) conv=notrunc 2> /dev/null
        echo hello > plain.gz
        """,
)


def test_a_full_disk_leaves_the_original_and_no_half(sandbox: Sandbox) -> None:
    result = run_on_full_disk("gzip f; echo $?; ls; wc -c < f")
    assert result.stdout == "1\nf\n1000000\n"
    assert result.stderr == "\ngzip: f.gz: No space left on device\n"


def test_help_and_version(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("gzip --help").stdout.startswith("Usage: gzip [OPTION]... [FILE]")
    for name in ("gzip", "gunzip", "zcat", "zcmp", "zdiff", "zgrep", "zforce", "zless", "znew"):
        assert sandbox.commands.run(f"{name} --version").stdout.splitlines()[0] in (
            f"{name} 1.13",
            f"{name} (gzip) 1.13",
        )
