"""bzip2 and its scripts: round trips, damage told."""

from __future__ import annotations

import bz2

from userland.recipes.compressors import check_agreement, run_on_full_disk
from userland.recipes.script_tables import prints
from wasmsand import Sandbox


def test_a_file_is_replaced_and_comes_back_as_it_was(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        """
        seq 100000 > f; chmod 640 f; touch -d '2001-02-03 04:05:06' f; sum=$(md5sum < f)
        bzip2 f; ls; stat -c '%a %Y' f.bz2; bzip2 -t f.bz2 && bunzip2 f.bz2; ls
        stat -c '%a %Y' f; [ "$(md5sum < f)" = "$sum" ] && echo same
        """
    )
    assert (result.stdout, result.stderr) == (
        "f.bz2\n640 981173106\nf\n640 981173106\nsame\n",
        "",
    )


test_what_agents_write = prints(
    ("seq 3 | bzip2 | bzcat", "1\n2\n3\n"),
    ("seq 9 | bzip2 -1 > a.bz2; seq 9 | bzip2 -9 > b.bz2; bzcat a.bz2 b.bz2 | wc -l", "18\n"),
    ("seq 3 > f; bzip2 -k f; bzip2 -c f > g.bz2; ls; cmp f.bz2 g.bz2", "f\nf.bz2\ng.bz2\n"),
    ("printf 'a\\nbb\\n' | bzip2 > f.bz2; bzgrep -n b f.bz2", "2:bb\n"),
    ("seq 3 | bzip2 > a.bz2; seq 4 | bzip2 > b.bz2; bzdiff a.bz2 b.bz2", "3a4\n> 4\n"),
)


def test_the_host_reads_what_it_writes_and_the_reverse(sandbox: Sandbox) -> None:
    check_agreement(sandbox, "bzip2 -k f && bunzip2 g.bz2", ".bz2", bz2)


def test_damage_is_told_and_what_is_whole_can_be_recovered(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        """
        seq 60000 > f; bzip2 -1 -k f; head -c 60000 f.bz2 > t.bz2
        bzip2 -t t.bz2 2> err; echo $?; grep -c 'file ends unexpectedly' err
        bzip2 -d t.bz2 2> /dev/null; echo $?; ls t*
        bzip2recover t.bz2 2> /dev/null; bzcat rec00001t.bz2 | head -n2
        echo plain > p.bz2; bunzip2 p.bz2; echo $?
        """
    )
    assert result.stdout == "2\n1\n2\nt.bz2\n1\n2\n2\n"
    assert result.stderr == "bunzip2: p.bz2 is not a bzip2 file.\n"


def test_a_full_disk_leaves_the_original_and_no_half() -> None:
    result = run_on_full_disk("bzip2 f; echo $?; ls; wc -c < f")
    assert result.stdout == "1\nf\n1000000\n"
    assert "No space left on device" in result.stderr


def test_help_and_version(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("bzip2 --help 2>&1; bzip2 --version 2>&1 < /dev/null")
    assert "usage: bzip2 [flags and input files in any order]" in result.stdout
    assert "Version 1.0.8, 13-Jul-2019" in result.stdout
