"""zip: archives that unzip and Python read; updating them."""

from __future__ import annotations

import io
import zipfile

import pytest

from userland.recipes.compressors import run_on_full_disk
from userland.recipes.script_tables import complains
from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("script", "stdout"),
    [
        ("zip -q z.zip a d/b; unzip -Z1 z.zip", "a\nd/b\n"),
        ("zip -qr z.zip d; unzip -Z1 z.zip", "d/\nd/b\nd/c.o\n"),
        ("zip -qrj z.zip d; unzip -Z1 z.zip", "b\nc.o\n"),
        ("zip -qr z.zip . -x '*.o' 'a'; unzip -Z1 z.zip | sort", "d/\nd/b\n"),
        ("zip -qr z.zip . -i '*.o'; unzip -Z1 z.zip", "d/c.o\n"),
        ("zip -qr z.zip .; zip -qd z.zip '*.o' a; unzip -Z1 z.zip", "d/\nd/b\n"),
        (
            "zip -q z.zip a; echo new >> a; touch -d +1min a; zip -u z.zip a",
            "updating: a (stored 0%)\n",
        ),
        ("zip -q z.zip a; zip -q z.zip d/b; unzip -Z1 z.zip", "a\nd/b\n"),
        ("find . -type f | sort | zip -q -@ z.zip; unzip -Z1 z.zip", "a\nd/b\nd/c.o\n"),
        ("echo from a pipe | zip -q z.zip -; unzip -p z.zip", "from a pipe\n"),
        ("zip -q - a | funzip", "a\n"),
        ("zip -qm z.zip a; ls", "d\nz.zip\n"),
        ("ln -s a l; zip -qy z.zip l; rm l; unzip -q z.zip; readlink l", "a\n"),
        ("zip -q -P secret z.zip a; rm a; unzip -q -P secret z.zip; cat a", "a\n"),
        (
            "zip -q -Z bzip2 z.zip big; unzip -v z.zip | awk 'NR==4{print $2}'; "
            "unzip -p z.zip | cmp - big",
            "BZip2\n",
        ),
        (
            "zip -q -0 z.zip big; zip -q -9 y.zip big; "
            "[ $(stat -c%s y.zip) -lt $(stat -c%s z.zip) ] && echo less",
            "less\n",
        ),
        (
            "zip -q -s 100k z.zip r; ls z*; zip -q -s 0 z.zip --out w.zip; "
            "unzip -p w.zip | cmp - r",
            "z.z01\nz.z02\nz.zip\n",
        ),
        ("zip -q z.zip a; echo comment | zip -qz z.zip; unzip -z z.zip | tail -n1", "comment\n"),
        ("zip -q z.zip a; zipnote z.zip | head -n1", "@ a\n"),
        ("zip -T z.zip a 2>&1 | tail -n1", "test of z.zip OK\n"),
    ],
)
def test_what_agents_write(sandbox: Sandbox, script: str, stdout: str) -> None:
    sandbox.commands.run("mkdir d; echo a > a; echo b > d/b; echo o > d/c.o")
    if "big" in script:
        sandbox.commands.run("seq 50000 > big")
    if "100k" in script:
        sandbox.commands.run("head -c 250000 /dev/urandom > r")
    result = sandbox.commands.run(script)
    assert (result.stdout, result.stderr) == (stdout, "")


def test_python_reads_what_it_writes(sandbox: Sandbox) -> None:
    sandbox.commands.run("mkdir ä; seq 100000 > ä/ü; echo x > 'with space'; chmod 640 ä/ü")
    assert sandbox.commands.run("zip -qr z.zip ä 'with space'").exit_code == 0
    with zipfile.ZipFile(io.BytesIO(sandbox.files.read("z.zip"))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["ä/", "ä/ü", "with space"]
        assert archive.getinfo("ä/ü").external_attr >> 16 == 0o100640
        assert archive.read("ä/ü") == b"".join(b"%d\n" % i for i in range(1, 100001))


test_errors_are_told = complains(
    ("zip z.zip nosuch", 12, "name not matched: nosuch"),
    ("echo text > z.zip; zip z.zip a", 3, "Zip file structure invalid"),
    ("zip -q nosuch/z.zip a", 15, "Could not create output file"),
    setup="echo a > a",
    on_stdout=True,
)


def test_a_full_disk_leaves_no_archive_that_claims_to_be_one() -> None:
    result = run_on_full_disk("zip -q f.zip f; echo $?; ls")
    assert result.stdout.endswith("\n14\nf\n")
    assert "No space left on device" in result.stdout


def test_help_and_version(sandbox: Sandbox) -> None:
    assert "zip [-options]" in sandbox.commands.run("zip -h").stdout
    assert "This is Zip 3.0" in sandbox.commands.run("zip -v").stdout
