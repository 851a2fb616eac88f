"""xz, lzma and their scripts: round trips, damage told, memory within bounds."""

from __future__ import annotations

import lzma

from userland.recipes.compressors import check_agreement, run_on_full_disk
from userland.recipes.script_tables import fails, prints
from wasmsand import Sandbox


def test_a_file_is_replaced_and_comes_back_as_it_was(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        """
        seq 100000 > f; chmod 640 f; touch -d '2001-02-03 04:05:06.789' f; sum=$(md5sum < f)
        xz f; ls; stat -c '%a %y' f.xz; xz -t f.xz && unxz f.xz; ls
        stat -c '%a %y' f; [ "$(md5sum < f)" = "$sum" ] && echo same
        """
    )
    facts = "640 2001-02-03 04:05:06.789000000 +0000\n"
    assert (result.stdout, result.stderr) == (f"f.xz\n{facts}f\n{facts}same\n", "")


test_what_agents_write = prints(
    ("seq 3 | xz | xzcat", "1\n2\n3\n"),
    ("seq 3 | xz -9e -T0 | xz -dc | tail -n1", "3\n"),
    ("seq 3 | lzma | lzcat; seq 2 | xz --format=lzma | unlzma", "1\n2\n3\n1\n2\n"),
    (
        "seq 9 | xz --check=sha256 | xzdec; seq 2 | lzma | lzmadec",
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n1\n2\n",
    ),
    ("seq 3 > f; xz -k f; ls; cat f.xz f.xz | xzcat | wc -l", "f\nf.xz\n6\n"),
    ("seq 1000 > f; xz f; xz --robot -l f.xz | awk '/^totals/{print $5}'", "3893\n"),
    ("seq 99 | xz --x86 --lzma2=preset=6e,dict=1MiB | xz -d | tail -n1", "99\n"),
    ("printf 'a\\nbb\\n' | xz > f.xz; xzgrep -n b f.xz; lzgrep -c b f.xz", "2:bb\n1\n"),
    ("seq 3 | xz > a.xz; seq 4 | xz > b.xz; xzdiff a.xz b.xz; xzcmp a.xz a.xz", "3a4\n> 4\n"),
)


def test_the_host_reads_what_it_writes_and_the_reverse(sandbox: Sandbox) -> None:
    check_agreement(sandbox, "xz -k f && unxz g.xz", ".xz", lzma)


test_errors_are_told = fails(
    ("unxz t.xz", 1, "unxz: t.xz: Unexpected end of input\n"),
    ("xz -t bad.xz", 1, "xz: bad.xz: Compressed data is corrupt\n"),
    ("unxz plain.xz", 1, "unxz: plain.xz: File format not recognized\n"),
    ("xz nosuch", 1, "xz: nosuch: No such file or directory\n"),
    ("xz plain.xz", 2, "xz: plain.xz: File already has '.xz' suffix, skipping\n"),
    ("xzcat f.xz | head -c1 >/dev/null; exit ${PIPESTATUS[0]}", 141, ""),
    (
        "xz -d -M 1MiB -c f.xz",
        1,
        "xz: f.xz: Memory usage limit reached\n"
        "xz: 9 MiB of memory is required. The limit is 1 MiB.\n",
    ),
    setup="""
        head -c 1000000 /dev/urandom > f; xz -k f; head -c 5000 f.xz > t.xz
        seq 1000 | xz > bad.xz; printf XXXX | dd of=bad.xz bs=1 seek=200 conv=notrunc 2> /dev/null
        echo hello > plain.xz
        """,
)


def test_a_full_disk_leaves_the_original_and_no_half() -> None:
    result = run_on_full_disk("xz -0 f; echo $?; ls; wc -c < f")
    assert result.stdout == "1\nf\n1000000\n"
    assert result.stderr == "xz: f.xz: Write error: No space left on device\n"


def test_help_and_version(sandbox: Sandbox) -> None:
    assert "-z, --compress" in sandbox.commands.run("xz --help").stdout
    assert sandbox.commands.run("xz --version").stdout == "xz (XZ Utils) 5.8.1\nliblzma 5.8.1\n"
