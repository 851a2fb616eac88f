"""unzip, zipinfo, funzip and zipgrep: reading what others wrote, telling damage."""

from __future__ import annotations

import io
import zipfile

import pytest

from userland.recipes.script_tables import prints
from wasmsand import Sandbox

_TEXT = b"".join(b"%d\n" % i for i in range(1, 100_001))


def _archive(method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        info = zipfile.ZipInfo("d/ü.txt", (2001, 2, 3, 4, 5, 6))
        info.external_attr, info.compress_type = 0o100640 << 16, method
        archive.writestr(info, _TEXT)
        link = zipfile.ZipInfo("link", (2001, 2, 3, 4, 5, 6))
        link.external_attr, link.create_system = 0o120777 << 16, 3
        archive.writestr(link, "d/ü.txt")
    return buffer.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_it_reads_what_python_writes(sandbox: Sandbox, method: int) -> None:
    sandbox.files.write("z.zip", _archive(method))
    result = sandbox.commands.run(
        "unzip -q z.zip; stat -c '%n %a %y' d/*; readlink link; md5sum < link"
    )
    assert (result.stdout.splitlines()[:2], result.stderr) == (
        ["d/ü.txt 640 2001-02-03 04:05:06.000000000 +0000", "d/ü.txt"],
        "",
    )
    assert sandbox.files.read("d/ü.txt") == _TEXT


test_what_agents_write = prints(
    ("unzip -l z.zip | tail -n1 | awk '{print $1, $2}'", "588903 2\n"),
    ("unzip -Z1 z.zip; zipinfo -1 z.zip", "d/ü.txt\nlink\nd/ü.txt\nlink\n"),
    ("unzip -p z.zip 'd/*' | tail -n1", "100000\n"),
    ("unzip -qj z.zip 'd/*' -d out; ls out", "ü.txt\n"),
    ("unzip -q z.zip -x link; ls", "d\nz.zip\n"),
    ("unzip -tq z.zip", "No errors detected in compressed data of z.zip.\n"),
    ("mkdir d; echo old > 'd/ü.txt'; unzip -qn z.zip; cat 'd/ü.txt'", "old\n"),
    ("mkdir d; echo old > 'd/ü.txt'; unzip -qo z.zip; tail -n1 'd/ü.txt'", "100000\n"),
    ("funzip < z.zip | head -n1", "1\n"),
    ("zipgrep 99999 z.zip 'd/*'", "d/ü.txt:99999\n"),
    setup=lambda sandbox: sandbox.files.write("z.zip", _archive()),
)


def test_times_owners_and_modes_of_unix_come_back(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        """
        echo x > f; chmod 755 f; touch -d '2001-02-03 04:05:07' f; TZ=EST5 zip -q z.zip f; rm f
        unzip -q z.zip; stat -c '%a %Y' f
        """
    )
    assert result.stdout == "755 981173107\n"


@pytest.mark.parametrize(
    ("script", "exit_code", "message"),
    [
        ("unzip nosuch.zip", 9, "cannot find or open nosuch.zip"),
        ("unzip -q short.zip", 9, "End-of-central-directory signature not found"),
        ("unzip -q bad.zip", 2, "bad CRC"),
        ("unzip -q z.zip nosuch", 11, "filename not matched:  nosuch"),
        ("unzip up.zip", 1, 'skipped "../" path component(s) in ../up'),
    ],
)
def test_errors_are_told(sandbox: Sandbox, script: str, exit_code: int, message: str) -> None:
    whole = _archive(zipfile.ZIP_STORED)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../up", "evil")
    sandbox.files.write("z.zip", whole)
    sandbox.files.write("short.zip", whole[:100_000])
    sandbox.files.write("bad.zip", whole[:5000] + b"X" + whole[5001:])
    sandbox.files.write("up.zip", buffer.getvalue())
    result = sandbox.commands.run(script)
    assert message in result.stdout + result.stderr
    assert result.exit_code == exit_code
    assert not sandbox.files.exists("/home/up")


def test_a_full_disk_is_never_success() -> None:
    with Sandbox(fs_limit_bytes=500_000) as small:
        small.files.write("z.zip", _archive())
        result = small.commands.run("unzip -q z.zip < /dev/null")
        assert result.exit_code == 50
        assert "disk full" in result.stdout + result.stderr


def test_help(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("unzip --help").stdout.startswith("UnZip 6.00 of 20 April 2009")
    assert sandbox.commands.run("zipinfo").stdout.startswith("ZipInfo 3.00 of 20 April 2009")
