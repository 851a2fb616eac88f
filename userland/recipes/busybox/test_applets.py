"""cpio, strings and other programs of BusyBox."""

from __future__ import annotations

from wasmsand import Sandbox


def test_an_archive_of_cpio_brings_a_tree_back(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "mkdir -p d/e; echo one > d/a; ln -s a d/link; ln d/a d/e/same; chmod 600 d/a;"
        "find d -depth | cpio -o -H newc > archive;"
        "mkdir x && cd x && cpio -idm < ../archive && diff -r ../d d;"
        "stat -c '%a %h' d/a; readlink d/link; file -b ../archive"
    )
    assert result.stdout == ("600 2\na\nASCII cpio archive (SVR4 with no CRC)\n")


def test_an_archive_of_cpio_can_be_listed(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo a | tee b > a; ls a b | cpio -o -H newc | cpio -t")
    assert result.stdout == "a\nb\n"


def test_strings_finds_text_and_where_it_is(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        r"printf 'x\0\0some text\0\1ab\0another one' > f; strings f; strings -n 2 -t d f"
    )
    assert result.stdout == (
        "some text\nanother one\n      3 some text\n     14 ab\n     17 another one\n"
    )


def test_help_is_there(sandbox: Sandbox) -> None:
    for name in ("cpio", "nslookup", "strings", "telnet", "time"):
        assert f"Usage: {name}" in sandbox.commands.run(f"/usr/bin/{name} --help 2>&1").stdout
