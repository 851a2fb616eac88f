"""tar when something is wrong: it says so, and its exit status does."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox

_SETUP = """
mkdir t; seq 100000 > t/a; seq 5 > t/b; tar cf t.tar t; tar czf t.tgz t
head -c 100000 t.tar > short.tar; head -c 50000 t.tgz > short.tgz; echo text > text
"""
_GIVES_UP = "tar: Exiting with failure status due to previous errors\n"
_STOPS = "tar: Error is not recoverable: exiting now\n"


@pytest.mark.parametrize(
    ("script", "exit_code", "stderr"),
    [
        ("tar tf short.tar", 2, f"tar: Unexpected EOF in archive\n{_STOPS}"),
        (
            "mkdir x; tar xf short.tar -C x",
            2,
            "tar: Unexpected EOF in archive\n"
            f"tar: rmtlseek not stopped at a record boundary\n{_STOPS}",
        ),
        (
            "mkdir x; tar xzf short.tgz -C x",
            2,
            "\ngzip: stdin: unexpected end of file\ntar: Unexpected EOF in archive\n"
            f"tar: Unexpected EOF in archive\n{_STOPS}",
        ),
        (
            "tar tf text",
            2,
            f"tar: This does not look like a tar archive\n{_GIVES_UP}",
        ),
        (
            "tar tzf t.tar",
            2,
            f"\ngzip: stdin: not in gzip format\ntar: Child returned status 1\n{_STOPS}",
        ),
        (
            "tar cf x.tar nosuch t/b",
            2,
            f"tar: nosuch: Cannot stat: No such file or directory\n{_GIVES_UP}",
        ),
        (
            "tar xf t.tar nosuch",
            2,
            f"tar: nosuch: Not found in archive\n{_GIVES_UP}",
        ),
        (
            "tar xf nosuch.tar",
            2,
            f"tar: nosuch.tar: Cannot open: No such file or directory\n{_STOPS}",
        ),
        (
            "tar czf nosuch/x.tgz t",
            2,
            "tar (child): nosuch/x.tgz: Cannot open: No such file or directory\n"
            "tar (child): Error is not recoverable: exiting now\n",
        ),
        (
            "tar cf x.tar",
            2,
            "tar: Cowardly refusing to create an empty archive\n"
            "Try 'tar --help' or 'tar --usage' for more information.\n",
        ),
        ("echo 1 > t/b; tar df t.tar", 1, ""),
        (
            "tar xf t.tgz -I nosuch",
            2,
            "tar (child): nosuch: Cannot exec: No such file or directory\n"
            "tar (child): Error is not recoverable: exiting now\n",
        ),
        (
            "chmod 0 t/b; tar cf x.tar t",
            2,
            f"tar: t/b: Cannot open: Permission denied\n{_GIVES_UP}",
        ),
    ],
)
def test_errors_are_told(sandbox: Sandbox, script: str, exit_code: int, stderr: str) -> None:
    sandbox.commands.run(_SETUP)
    result = sandbox.commands.run(script)
    if stderr.startswith("tar (child)"):
        # What the parent then says depends on how far it had come.
        assert result.stderr.startswith(stderr)
        assert result.exit_code == exit_code
        return
    assert (result.exit_code, result.stderr) == (exit_code, stderr)


def test_a_listing_that_nobody_reads_on_ends(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        """
        mkdir t; touch t/{1..20000}; tar cf t.tar t
        tar tf t.tar | head -n 1; echo ${PIPESTATUS[0]}
        tar cf - t | head -c 1 > /dev/null; echo ${PIPESTATUS[0]}
        """
    )
    assert result.stdout == "t/\n141\n141\n"


@pytest.mark.parametrize("option", ["", "-z", "-J"])
def test_a_full_disk_is_never_success(option: str) -> None:
    with Sandbox(fs_limit_bytes=3_000_000) as small:
        small.commands.run("head -c 2000000 /dev/urandom > f")
        result = small.commands.run(f"tar -c {option} -f f.tar f")
        assert result.exit_code == 2
        assert "No space left on device" in result.stderr or "Wrote only" in result.stderr


def test_extraction_that_fills_the_disk_is_never_success() -> None:
    with Sandbox(fs_limit_bytes=4_500_000) as small:
        small.commands.run("seq 400000 > f; tar czf f.tgz f; rm f; seq 200000 > other")
        result = small.commands.run("tar xzf f.tgz")
        assert result.exit_code == 2
        assert "f: Wrote only" in result.stderr or "No space left on device" in result.stderr, (
            result.stderr
        )


def test_archives_cannot_write_outside_of_the_directory(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        """
        mkdir x; echo evil > e; tar cPf abs.tar /home/user/e; tar cPf up.tar ../user/e
        rm e; cd x; tar xf ../abs.tar; echo $?; tar xf ../up.tar; echo $?
        cat home/user/e; ls . ..
        """
    )
    assert result.stdout == "0\n2\nevil\n.:\nhome\n\n..:\nabs.tar\nup.tar\nx\n"
    assert "Member name contains '..'" in result.stderr
