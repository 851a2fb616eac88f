"""zstd: round trips, dictionaries, the other formats it knows, damage told."""

from __future__ import annotations

from userland.recipes.compressors import run_on_full_disk
from userland.recipes.script_tables import complains, prints
from wasmsand import Sandbox


def test_a_file_is_kept_and_comes_back_as_it_was(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        """
        seq 100000 > f; chmod 640 f; touch -d '2001-02-03 04:05:06.789' f
        zstd -q f; ls; stat -c '%a %y' f.zst; mv f g; zstd -q -t f.zst && unzstd -q f.zst; ls
        stat -c '%a %y' f; cmp f g && zstd -q --rm f -o h.zst; ls
        """
    )
    facts = "640 2001-02-03 04:05:06.789000000 +0000\n"
    assert (result.stdout, result.stderr) == (
        f"f\nf.zst\n{facts}f\nf.zst\ng\n{facts}f.zst\ng\nh.zst\n",
        "",
    )


test_what_agents_write = prints(
    ("seq 3 | zstd | zstdcat", "1\n2\n3\n"),
    ("seq 3 | zstd -19 -T0 | zstd -dc | tail -n1", "3\n"),
    ("seq 100000 | zstd --ultra -22 --long=24 | zstd -d --long=24 | wc -l", "100000\n"),
    ("seq 9 | zstd --fast=5 | zstdmt -d | wc -l", "9\n"),
    ("seq 3 > f; zstd -q f; cat f.zst f.zst | zstdcat | wc -l", "6\n"),
    ("seq 3 | zstd --format=gzip | gzip -dc; seq 3 | gzip | zstd -dc", "1\n2\n3\n1\n2\n3\n"),
    ("seq 3 | zstd --format=xz | xz -dc; seq 3 | lzma | zstd -dc", "1\n2\n3\n1\n2\n3\n"),
    ("printf 'a\\nbb\\n' | zstd > f.zst; zstdgrep b f.zst", "bb\n"),
    ("seq 4 > f; zstd -q f; zstd -q -l f.zst | awk 'NR==2{print $1, $NF}'", "1 f.zst\n"),
)


def test_a_dictionary_helps_small_files(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        """
        mkdir d; for i in {1..500}; do
            printf '{"id": %d, "name": "user%d", "email": "user%d@example.org"}' $i $i $i > d/$i
        done
        zstd -q --train d/* -o dict --maxdict=4096 2> /dev/null
        zstd -q d/7 -o plain.zst; zstd -q -D dict d/7 -o small.zst
        [ $(stat -c %s small.zst) -lt $(stat -c %s plain.zst) ] && echo smaller
        zstd -q -D dict -dc small.zst | cmp - d/7 && echo same
        """
    )
    assert (result.stdout, result.stderr) == ("smaller\nsame\n", "")


test_errors_are_told = complains(
    ("unzstd t.zst -o x; ls x", 2, "premature end"),
    ("zstd -t bad.zst", 1, "Restored data doesn't match checksum"),
    ("unzstd plain.zst", 1, "unsupported format"),
    ("zstd nosuch", 1, "No such file or directory"),
    ("zstdcat f.zst | head -c1 >/dev/null; exit ${PIPESTATUS[0]}", 141, ""),
    setup="""
        head -c 1000000 /dev/urandom > f; zstd -q f; head -c 5000 f.zst > t.zst
        seq 1000 | zstd -q > bad.zst
        at=$(($(stat -c %s bad.zst) - 4))
        printf XXXX | dd of=bad.zst bs=1 seek=$at conv=notrunc status=none
        echo hello > plain.zst
        """,
)


def test_a_full_disk_is_told_and_the_original_stays() -> None:
    result = run_on_full_disk("zstd -q --rm f; echo $?; wc -c < f")
    assert result.stdout == "70\n1000000\n"
    assert "No space left on device" in result.stderr


def test_help_and_version(sandbox: Sandbox) -> None:
    assert "Usage: zstd [OPTIONS...]" in sandbox.commands.run("zstd --help").stdout
    assert "v1.5.7" in sandbox.commands.run("zstd --version").stdout
