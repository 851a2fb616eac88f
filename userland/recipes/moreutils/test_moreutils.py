"""moreutils: sponge, ifne, pee, mispipe, isutf8, errno."""

from __future__ import annotations

from userland.recipes.script_tables import ends
from wasmsand import Sandbox


def test_sponge_writes_a_file_that_is_being_read(sandbox: Sandbox) -> None:
    sandbox.files.write("f", "c\na\nb\n")
    sandbox.commands.run("chmod 640 f; sort f | sponge f")
    assert sandbox.commands.run("cat f; stat -c %a f").stdout == "a\nb\nc\n640\n"


def test_sponge_appends_and_passes_on(sandbox: Sandbox) -> None:
    script = "echo 1 > f; echo 2 | sponge -a f; cat f; seq 300000 | sponge | tail -n 1"
    assert sandbox.commands.run(script).stdout == "1\n2\n300000\n"


def test_sponge_says_why_it_cannot(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo x | sponge /missing/file")
    assert (result.exit_code, result.stderr) == (
        1,
        "error opening output file: No such file or directory\n",
    )


test_ifne = ends(
    ("printf 'in\\n' | ifne cat", "in\n", 0),
    ("printf '' | ifne echo never", "", 0),
    ("printf '' | ifne -n echo empty", "empty\n", 0),
    ("printf 'kept\\n' | ifne -n echo never", "kept\n", 0),
    ("seq 100000 | ifne tail -n 1", "100000\n", 0),
    ("echo x | ifne sh -c 'cat; exit 3'", "x\n", 3),
    ("printf '' | ifne -n no-such-command 2>/dev/null", "", 1),
)


def test_pee_feeds_several_commands(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("seq 3 | pee 'wc -l' 'tail -n 1 > last'; cat last")
    assert result.stdout == "3\n3\n"


def test_mispipe_gives_the_first_status(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("mispipe 'echo a; exit 4' 'tr a b'; echo $?")
    assert (result.stdout, result.stderr) == ("b\n4\n", "")


def test_isutf8(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "printf 'é\\n' | isutf8; echo $?; printf '\\xe9\\n' | isutf8; echo $?"
    )
    assert result.stdout.startswith("0\n")
    assert result.stdout.endswith("1\n")


def test_errno(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("errno ENOENT; errno 13; errno -s directory | wc -l")
    assert result.stdout == "ENOENT 2 No such file or directory\nEACCES 13 Permission denied\n4\n"
