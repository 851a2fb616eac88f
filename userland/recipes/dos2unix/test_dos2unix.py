"""dos2unix and unix2dos: line ends, byte-order marks, what they leave alone."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        ("dos2unix", b"a\r\nb\r\n", b"a\nb\n"),
        ("unix2dos", b"a\nb\n", b"a\r\nb\r\n"),
        ("unix2dos", b"a\r\nb\n", b"a\r\nb\r\n"),
        ("mac2unix", b"a\rb\r", b"a\nb\n"),
        ("unix2mac", b"a\nb\n", b"a\rb\r"),
        ("dos2unix", b"\xef\xbb\xbfx\r\n", b"x\n"),
        ("unix2dos -m", b"x\n", b"\xef\xbb\xbfx\r\n"),
        ("dos2unix", "\ufeffé\r\n".encode("utf-16-le"), "é\n".encode()),
    ],
)
def test_conversion(sandbox: Sandbox, command: str, before: bytes, after: bytes) -> None:
    sandbox.files.write("f", before)
    result = sandbox.commands.run(f"LC_ALL=C.UTF-8 {command} -q f")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)
    assert sandbox.files.read("f") == after


def test_it_says_what_it_does_and_skips_binary_files(sandbox: Sandbox) -> None:
    sandbox.files.write("text", b"a\r\n")
    sandbox.files.write("binary", b"a\0\r\n")
    result = sandbox.commands.run("dos2unix text binary")
    assert result.stderr == (
        "dos2unix: converting file text to Unix format...\n"
        "dos2unix: Binary symbol 0x00 found at line 1\n"
        "dos2unix: Skipping binary file binary\n"
    )
    assert sandbox.files.read("binary") == b"a\0\r\n"


def test_as_a_filter_to_a_new_file_and_with_the_date_kept(sandbox: Sandbox) -> None:
    sandbox.files.write("f", b"a\r\n")
    script = (
        "dos2unix < f | od -An -c; dos2unix -q -n f g; cmp g <(echo a); touch -d 2001-02-03 f; "
        "dos2unix -q -k f; date -r f +%F"
    )
    assert sandbox.commands.run(script).stdout == "   a  \\n\n2001-02-03\n"


def test_information(sandbox: Sandbox) -> None:
    sandbox.files.write("f", b"a\r\nb\nc\r\n")
    assert sandbox.commands.run("dos2unix -idu f; dos2unix -ic f").stdout == (
        "       2       1  f\nf\n"
    )


def test_a_missing_file(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("dos2unix missing")
    assert "dos2unix: missing: No such file or directory" in result.stderr
    assert result.exit_code == 2
