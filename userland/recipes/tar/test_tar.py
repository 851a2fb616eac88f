"""tar: what goes into an archive comes out of it, by files and by pipes."""

from __future__ import annotations

import io
import tarfile

import pytest

from wasmsand import Sandbox

_TREE = """
mkdir -p t/sub/empty; cd t
echo hello > a; chmod 600 a; ln -s a link; ln -s nowhere dangling; ln a hard
echo x > 'name with  spaces'; echo ö > ü; touch -d '2001-02-03 04:05:06' ü
seq 1000 > sub/seq; chmod 755 sub/seq; chmod 711 sub; mkfifo fifo; cd ..
"""
_MEMBERS = 11
_FACTS = "find t -printf '%p %M %s %l %n %Ts\\n' | sort"


def _run(sandbox: Sandbox, script: str) -> str:
    result = sandbox.commands.run(script)
    assert (result.stderr, result.exit_code) == ("", 0)
    return result.stdout


@pytest.mark.parametrize("format", ["gnu", "pax", "ustar", "oldgnu", "v7"])
def test_a_tree_comes_back_as_it_was(sandbox: Sandbox, format: str) -> None:
    tree = _TREE if format != "v7" else _TREE.replace("mkfifo fifo", "touch fifo")
    printed = _run(
        sandbox,
        f"""
        {tree} {_FACTS} > before; cp -a t copy
        tar -c --format={format} -f t.tar t && rm -r t && tar -xf t.tar && {_FACTS} > after
        diff -r --no-dereference -x fifo t copy; [ t/a -ef t/hard ] && echo linked
        cmp before after && echo alike
        """,
    )
    assert printed == "linked\nalike\n"


def test_pax_keeps_fractions_of_seconds_and_long_names(sandbox: Sandbox) -> None:
    printed = _run(
        sandbox,
        """
        n=$(printf 'x%.0s' {1..200}); touch -d '2001-02-03 04:05:06.789' $n
        tar -cf t.tar --format=pax $n; rm $n; tar -xf t.tar; stat -c '%y' $n
        """,
    )
    assert printed == "2001-02-03 04:05:06.789000000 +0000\n"


@pytest.mark.parametrize(
    ("option", "name", "magic"),
    [
        ("-z", "t.tar.gz", "1f8b"),
        ("-j", "t.tar.bz2", "425a68"),
        ("-J", "t.tar.xz", "fd377a"),
        ("--zstd", "t.tar.zst", "28b52f"),
        ("--lzma", "t.tar.lzma", "5d0000"),
        ("-I 'gzip -1'", "t.tar.gz", "1f8b"),
        ("-a", "t.tgz", "1f8b"),
        ("-a", "t.tbz2", "425a68"),
        ("-a", "t.txz", "fd377a"),
        ("-a", "t.tar.zst", "28b52f"),
    ],
)
def test_archives_are_compressed_by_the_real_programs(
    sandbox: Sandbox, option: str, name: str, magic: str
) -> None:
    printed = _run(
        sandbox,
        f"""
        {_TREE} tar -c {option} -f {name} t && od -An -tx1 -N{len(magic) // 2} {name} | tr -d ' '
        tar -tf {name} | wc -l; mkdir x; tar -xf {name} -C x && cmp t/sub/seq x/t/sub/seq
        """,
    )
    assert printed == f"{magic}\n{_MEMBERS}\n"


@pytest.mark.parametrize("option", ["-z", "-j", "-J", "--zstd"])
def test_compressed_archives_go_through_pipes_both_ways(sandbox: Sandbox, option: str) -> None:
    # A tar of its own, forked, stands between the pipe and the compressor.
    printed = _run(
        sandbox,
        f"""
        {_TREE} mkdir x
        tar -c {option} -f - t | cat | tar -x {option} -f - -C x && cmp t/sub/seq x/t/sub/seq
        tar -c {option} t > s && cat s | tar -t {option} | wc -l
        """,
    )
    assert printed == f"{_MEMBERS}\n"


def test_one_tar_feeds_another(sandbox: Sandbox) -> None:
    printed = _run(
        sandbox,
        f"{_TREE} mkdir x; tar c t | tar x -C x; cd x; {_FACTS} > ../a; cd ..; {_FACTS} | cmp - a",
    )
    assert printed == ""


@pytest.mark.parametrize(
    ("script", "stdout"),
    [
        (
            "tar cf t.tar --sort=name --exclude='*.o' --exclude=sub/deep t; tar tf t.tar",
            "t/\nt/a\nt/sub/\nt/sub/b\n",
        ),
        (
            "tar cf t.tar t; tar xf t.tar --strip-components=2; ls; ls deep",
            "b\nb.o\ndeep\nt\nt.tar\nc\n",
        ),
        ("tar cf t.tar -C t a sub/b; tar tf t.tar", "a\nsub/b\n"),
        ("tar cf t.tar --sort=name t; tar xOf t.tar t/a t/sub/b", "a\nb\n"),
        ("tar cf t.tar t; tar xf t.tar --wildcards -O '*/b*'", "b\no\n"),
        ("tar cf t.tar t/a; tar rf t.tar t/sub/b; tar tf t.tar", "t/a\nt/sub/b\n"),
        ("tar cf t.tar t; tar --delete -f t.tar t/sub; tar tf t.tar", "t/\nt/a\n"),
        ("tar cf t.tar t/a t/sub/b; touch -d '+1 minute' t/a; tar uvf t.tar t/a t/sub/b", "t/a\n"),
        (
            "tar cf 1.tar t/a; tar cf 2.tar t/sub/b; tar Af 1.tar 2.tar; tar tf 1.tar",
            "t/a\nt/sub/b\n",
        ),
        ("tar cf t.tar --transform='s,^t,new,' t/a; tar tf t.tar", "new/a\n"),
        ("printf 't/a\\nt/sub/b\\n' | tar cf t.tar -T -; tar tf t.tar", "t/a\nt/sub/b\n"),
        ("find t -name '*.o' -print0 | tar czf t.tgz --null -T -; tar tzf t.tgz", "t/sub/b.o\n"),
        (
            "o='--sort=name --owner=0 --group=0 --mtime=@0'; tar c $o t > 1; touch t/*; "
            "tar c $o t | cmp - 1 && echo same",
            "same\n",
        ),
        ("tar cf t.tar t; tar df t.tar && echo same", "same\n"),
        (
            "tar cf t.tar t; mkdir x; "
            "tar xf t.tar -C x --to-command='wc -c | tr \"\\n\" \" \"' --exclude='*.o'",
            "2 2 2 ",
        ),
        (
            "tar cf t.tar --checkpoint=1 --checkpoint-action=exec='echo $TAR_CHECKPOINT' -b1 t/a",
            "1\n2\n3\n4\n",
        ),
        ("tar cf t.tar t/a; echo new > t/a; tar xf t.tar --skip-old-files; cat t/a", "new\n"),
        ("tar czf t.tgz t --remove-files; ls", "t.tgz\n"),
        ("tar cf t.tar -V label t/a; tar --test-label -f t.tar", "label\n"),
        (
            "tar -C / -cf t.tar home/user/t/a /home/user/t/a 2>/dev/null; tar tf t.tar",
            "home/user/t/a\nhome/user/t/a\n",
        ),
    ],
)
def test_what_agents_write(sandbox: Sandbox, script: str, stdout: str) -> None:
    sandbox.commands.run(
        "mkdir -p t/sub/deep; echo a >t/a; echo b >t/sub/b; echo o >t/sub/b.o; echo c >t/sub/deep/c"
    )
    assert _run(sandbox, script) == stdout


def test_incremental_backups_follow_changes_and_removals(sandbox: Sandbox) -> None:
    printed = _run(
        sandbox,
        """
        mkdir d; echo 1 > d/one; echo 2 > d/two
        tar -c -g snar -f 0.tar d
        rm d/one; echo 3 > d/three
        tar -c -g snar -f 1.tar d; tar -tf 1.tar
        rm -r d; tar -x -g /dev/null -f 0.tar; ls d; tar -x -g /dev/null -f 1.tar; ls d
        """,
    )
    assert printed == "d/\nd/three\none\ntwo\nthree\ntwo\n"


def test_volumes_are_changed_by_a_script(sandbox: Sandbox) -> None:
    printed = _run(
        sandbox,
        """
        seq 20000 > big; echo 'echo v$TAR_VOLUME.tar >&$TAR_FD' > next
        tar -c -M -L 50 -F 'sh next' -f v1.tar big; ls v*
        mv big was; tar -x -M -F 'sh next' -f v1.tar && cmp big was
        """,
    )
    assert printed == "v1.tar\nv2.tar\nv3.tar\n"


@pytest.mark.parametrize("version", ["0.0", "0.1", "1.0"])
def test_holes_stay_holes(sandbox: Sandbox, version: str) -> None:
    printed = _run(
        sandbox,
        f"""
        truncate -s 3G s; echo end >> s; printf mid | dd of=s bs=1 seek=1G conv=notrunc status=none
        tar -cSf s.tar --format=pax --sparse-version={version} s
        [ $(stat -c %s s.tar) -lt 100000 ] && echo small
        rm s; tar -xf s.tar; stat -c '%s' s; [ $(stat -c %b s) -lt 100 ] && echo sparse
        tail -c 4 s; dd if=s bs=1 skip=1G count=3 status=none
        """,
    )
    assert printed == "small\n3221225476\nsparse\nend\nmid"


def test_the_host_reads_what_it_writes_and_the_reverse(sandbox: Sandbox) -> None:
    text = bytes(range(256)) * 4_000
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("dir/ä" + "x" * 150)
        member.size, member.mtime, member.mode = len(text), 981173106.5, 0o640
        archive.addfile(member, io.BytesIO(text))
    sandbox.files.write("in.tgz", buffer.getvalue())
    printed = _run(sandbox, "tar xf in.tgz && stat -c '%a %s %.1Y' dir/* && tar cjf out.tbz dir")
    assert printed == f"640 {len(text)} 981173106.5\n"
    with tarfile.open(fileobj=io.BytesIO(sandbox.files.read("out.tbz"))) as archive:
        assert archive.getnames() == ["dir", member.name]
        extracted = archive.extractfile(member.name)
        assert extracted is not None
        assert extracted.read() == text


def test_help_and_version(sandbox: Sandbox) -> None:
    assert _run(sandbox, "tar --version").startswith("tar (GNU tar) 1.35\n")
    assert _run(sandbox, "tar --help").startswith("Usage: tar [OPTION...] [FILE]...\n")
