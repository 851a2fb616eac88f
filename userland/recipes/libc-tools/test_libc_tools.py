"""getconf, getent, iconv and locale in a sandbox."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox

TEXT = "naïve café, 10 €\n"


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("getconf LONG_BIT", "32\n"),
        ("getconf PAGE_SIZE", "4096\n"),
        ("getconf NAME_MAX /tmp", "255\n"),
        ("getconf -v POSIX_V7_ILP32_OFF32 CHAR_BIT", "8\n"),
        ("[ $(getconf _NPROCESSORS_ONLN) = $(nproc --all) ] && echo same", "same\n"),
        ("getconf -a | grep -c .", "68\n"),
        ("getent passwd user | cut -d: -f1,3", "user:1000\n"),
        ("getent passwd 0 | cut -d: -f1", "root\n"),
        ("getent group users | cut -d: -f1,3", "users:100\n"),
        ("getent passwd | wc -l | tr -d ' '; wc -l </etc/passwd", None),
        ("getent hosts localhost | head -1", "127.0.0.1       localhost\n"),
        ("LC_ALL=C.UTF-8 locale charmap", "UTF-8\n"),
        (
            "LC_ALL= LANG=en_US.UTF-8 LC_TIME=C locale | head -4 | tail -3",
            'LC_CTYPE="en_US.UTF-8"\nLC_NUMERIC="en_US.UTF-8"\nLC_TIME=C\n',
        ),
        ("locale -a | grep -x C.UTF-8", "C.UTF-8\n"),
        ("locale -ck mon | tail -1 | cut -c1-21", 'mon="January;February\n'),
    ],
)
def test_what_the_system_is(sandbox: Sandbox, command: str, printed: str | None) -> None:
    result = sandbox.commands.run(command)
    assert (result.exit_code, result.stderr) == (0, "")
    if printed is None:
        assert len(set(result.stdout.split())) == 1
    else:
        assert result.stdout == printed


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("getconf NO_SUCH", 2, "getconf: Unrecognized variable `NO_SUCH'\n"),
        (
            "getconf PATH_MAX /none | cat; getconf ARG_MAX / 2>&1 | head -1 >&2",
            0,
            "Usage: getconf [-v SPEC] VAR\n",
        ),
        ("getent passwd nobody-here", 2, ""),
        ("getent no-such-database", 1, "Unknown database: no-such-database\n"),
        ("locale no_such_keyword", 1, 'locale: unknown name "no_such_keyword"\n'),
        (
            "iconv -f no-such </dev/null",
            1,
            "iconv: conversion from `no-such' to `UTF-8' is not supported\n",
        ),
        (
            "iconv /no/such/file",
            1,
            "iconv: cannot open input file `/no/such/file': No such file or directory\n",
        ),
    ],
)
def test_errors(sandbox: Sandbox, command: str, status: int, message: str) -> None:
    result = sandbox.commands.run(command)
    assert (result.exit_code, result.stderr) == (status, message)


@pytest.mark.parametrize("encoding", ["UTF-16LE", "UTF-32BE", "ISO-8859-15", "CP1252"])
def test_text_survives_another_encoding(sandbox: Sandbox, encoding: str) -> None:
    text = TEXT * 20_000
    sandbox.files.write("/tmp/text", text)
    result = sandbox.commands.run(
        f"cd /tmp && iconv -f UTF-8 -t {encoding} -o other text && iconv -f {encoding} other | "
        "cmp - text"
    )
    assert result.exit_code == 0, result.stderr
    assert sandbox.files.read("/tmp/other") == text.encode(encoding)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("GB18030", "汉字"),
        ("BIG5", "漢字"),
        ("EUC-KR", "한글"),
        ("SHIFT_JIS", "日本"),
        ("KOI8-R", "Да"),
    ],
)
def test_many_encodings_can_be_read(sandbox: Sandbox, encoding: str, text: str) -> None:
    sandbox.files.write("/tmp/text", text.encode(encoding))
    assert sandbox.commands.run(f"iconv -f {encoding} -t UTF-8 /tmp/text").stdout == text


def test_a_character_that_the_target_has_not_is_an_error_with_its_place(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/text", TEXT)
    result = sandbox.commands.run(
        "iconv -f UTF-8 -t LATIN1 /tmp/text | wc -c; exit ${PIPESTATUS[0]}"
    )
    assert result.exit_code == 1
    assert result.stderr == "iconv: illegal input sequence at position 17\n"
    assert result.stdout == "15\n"


def test_such_a_character_can_be_left_out_or_replaced(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/text", TEXT)
    for target in ("-c -t ASCII", "-t ASCII//IGNORE"):
        result = sandbox.commands.run(f"iconv -f UTF-8 {target} /tmp/text")
        assert result.stdout == "nave caf, 10 \n"
    result = sandbox.commands.run("iconv -f UTF-8 -t ASCII//TRANSLIT /tmp/text")
    assert result.stdout == "na?ve caf?, 10 ?\n"


def test_what_is_not_of_the_source_s_encoding_is_an_error(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(r"printf 'ab\377c' | iconv -f UTF-8 -t UTF-16LE | wc -c")
    assert result.stderr == "iconv: illegal input sequence at position 2\n"
    assert result.stdout == "4\n"
    result = sandbox.commands.run(r"printf 'ab\303' | iconv -f UTF-8 -t UTF-8")
    assert result.stderr == "iconv: incomplete character or shift sequence at end of buffer\n"
    assert result.stdout == "ab"


@pytest.mark.parametrize("program", ["getconf", "getent", "iconv", "locale"])
def test_programs_say_what_they_are(sandbox: Sandbox, program: str) -> None:
    result = sandbox.commands.run(f"{program} --version")
    assert (result.exit_code, result.stdout) == (0, f"{program} (wasmsand libc-tools) 1\n")
    result = sandbox.commands.run(f"{program} --help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: {program} ")


@pytest.mark.parametrize("name", ["ping", "ping6", "traceroute", "tracepath"])
def test_programs_that_need_icmp_say_so(sandbox: Sandbox, name: str) -> None:
    result = sandbox.commands.run([name, "-c", "1", "localhost"])
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr.startswith(f"{name}: the sandbox has no ICMP, ")
    assert "nc -zv HOST PORT" in result.stderr


_NAME_SERVER = r"""
import socket
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.bind(("127.0.0.1", 5353))
while True:
    question, client = link.recvfrom(512)
    records = {
        1: [b"\x00\x04\x01\x02\x03\x04", b"\x00\x04\x05\x06\x07\x08"],
        15: [b"\x00\x09\x00\x0a\x04mail\xc0\x0c"], 16: [b"\x00\x0a\x05hello\x03all"],
    }.get(question[-3], [])
    head = question[:2] + b"\x81\x80\x00\x01" + bytes([0, len(records)]) + b"\x00\x00\x00\x00"
    answer = head + question[12:]
    for record in records:
        answer += b"\xc0\x0c" + question[-4:] + b"\x00\x00\x0e\x10" + record
    link.sendto(answer, client)
"""


def test_dig_shows_the_records_of_a_server(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/server.py", _NAME_SERVER)
    sandbox.commands.start(["python3", "/tmp/server.py"])
    result = sandbox.commands.run(
        "until dig +short @127.0.0.1 -p 5353 a.example | grep -q 1; do sleep 0.05; done\n"
        'ask() { dig @127.0.0.1 -p 5353 "$@"; }\n'
        "ask +short a.example; ask a.example MX +short; ask -t txt a.example +short\n"
        "ask +noall +answer a.example; ask a.example AAAA | grep -o 'status: .*, id\\|ANSWER: .*'"
    )
    assert (result.stdout, result.stderr) == (
        '1.2.3.4\n5.6.7.8\n10 mail.a.example.\n"hello" "all"\n'
        "a.example.\t\t3600\tIN\tA\t1.2.3.4\na.example.\t\t3600\tIN\tA\t5.6.7.8\n"
        "status: NOERROR, id\nANSWER: 0\n",
        "",
    )


@pytest.mark.parametrize(
    ("command", "exit_code", "message"),
    [
        ("dig", 1, "Usage: dig "),
        ("host", 1, "Usage: host "),
        ("host -t what a.example", 2, "host: invalid type: WHAT"),
        ("dig @127.0.0.1 -p 9 a.example", 9, "no servers could be reached"),
        ("dig -x 1.2.3", 9, "does not appear to be an IPv4 or IPv6 address"),
    ],
)
def test_look_ups_that_cannot_be_made(
    sandbox: Sandbox, command: str, exit_code: int, message: str
) -> None:
    result = sandbox.commands.run(command)
    assert result.exit_code == exit_code
    assert message in result.stderr + result.stdout
