"""file: what kinds of data it knows, MIME types, its options."""

from __future__ import annotations

import gzip
import io
import sqlite3
import struct
import zipfile
import zlib

import pytest

from wasmsand import Sandbox


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


def archive() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("name", "content")
    return stream.getvalue()


def database() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (a)")
    return connection.serialize()


# A 64-bit little-endian executable for x86-64, header only.
ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHI", 2, 62, 1) + bytes(40)

KINDS = [
    (b"hello\n", "ASCII text", "text/plain"),
    ("grüße\n".encode(), "Unicode text, UTF-8 text", "text/plain"),
    ("grüße\n".encode("latin-1"), "ISO-8859 text", "text/plain"),
    (b"a\r\nb\r\n", "ASCII text, with CRLF line terminators", "text/plain"),
    (b'{"a": [1, 2]}\n', "JSON text data", "application/json"),
    (b"#!/bin/bash\necho\n", "Bourne-Again shell script, ASCII text executable",
     "text/x-shellscript"),
    (b"#!/usr/bin/env python3\nprint()\n", "Python script, ASCII text executable",
     "text/x-script.python"),
    (b"#include <stdio.h>\nint main(void) { return 0; }\n", "C source, ASCII text", "text/x-c"),
    (b"<!DOCTYPE html><html></html>\n", "HTML document, ASCII text", "text/html"),
    (b'<?xml version="1.0"?><a/>\n', "XML 1.0 document, ASCII text", "text/xml"),
    (b"%PDF-1.7\n", "PDF document, version 1.7", "application/pdf"),
    (b"\0asm\1\0\0\0", "WebAssembly (wasm) binary module version 0x1 (MVP)", "application/wasm"),
    (ELF, "ELF 64-bit LSB executable, x86-64, version 1 (SYSV)", "application/x-executable"),
    (png(3, 2), "PNG image data, 3 x 2, 8-bit/color RGB, non-interlaced", "image/png"),
    (b"GIF89a\1\0\2\0\0\0\0", "GIF image data, version 89a, 1 x 2", "image/gif"),
    (gzip.compress(b"x", mtime=0), "gzip compressed data", "application/gzip"),
    (archive(), "Zip archive data", "application/zip"),
    (database(), "SQLite 3.x database", "application/vnd.sqlite3"),
    (b"a,b,c\n1,2,3\n4,5,6\n7,8,9\n", "CSV ASCII text", "text/csv"),
    (b"", "empty", "inode/x-empty"),
    (bytes([0, 1, 2, 3]), "data", "application/octet-stream"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "kind", "mime"), KINDS)
def test_kinds(sandbox: Sandbox, content: bytes, kind: str, mime: str) -> None:
    sandbox.files.write("f", content)
    result = sandbox.commands.run("file -b f; file -b --mime-type f")
    described, mime_type = result.stdout.splitlines()
    assert described.startswith(kind)
    assert mime_type == mime
    assert result.stderr == ""


def test_files_that_are_no_plain_files(sandbox: Sandbox) -> None:
    script = "mkdir d; ln -s d l; ln -s nowhere n; mkfifo p; file d l n p /dev/null; file -L l"
    assert sandbox.commands.run(script).stdout == (
        "d:         directory\n"
        "l:         symbolic link to d\n"
        "n:         broken symbolic link to nowhere\n"
        "p:         fifo (named pipe)\n"
        "/dev/null: character special (1/3)\n"
        "l: directory\n"
    )


def test_columns_encodings_and_extensions(sandbox: Sandbox) -> None:
    sandbox.files.write("a", "plain\n")
    sandbox.files.write("longer.png", png(1, 1))
    script = "file a longer.png; file -i a; file --mime-encoding a; file --extension longer.png"
    assert sandbox.commands.run(script).stdout == (
        "a:          ASCII text\n"
        "longer.png: PNG image data, 1 x 1, 8-bit/color RGB, non-interlaced\n"
        "a: text/plain; charset=us-ascii\n"
        "a: us-ascii\n"
        "longer.png: png\n"
    )


def test_standard_input_and_a_list_of_names(sandbox: Sandbox) -> None:
    script = "printf 'text\\n' | file -; echo x > a; echo a > list; file -f list; cat a | file -b -"
    assert sandbox.commands.run(script).stdout == (
        "/dev/stdin: ASCII text\na: ASCII text\nASCII text\n"
    )


def test_its_own_rules_and_those_of_a_user(sandbox: Sandbox) -> None:
    sandbox.files.write("my.magic", "0\tstring\tMINE\tMy own format\n>4\tbyte\tx\tversion %d\n")
    sandbox.files.write("f", b"MINE\x07")
    result = sandbox.commands.run("file -m my.magic f; file --version")
    assert result.stdout == (
        "f: My own format version 7\nfile-5.46\nmagic file from /usr/share/misc/magic\n"
    )


def test_rules_can_be_compiled(sandbox: Sandbox) -> None:
    # Compiled rules must be two at least.
    sandbox.files.write("my.magic", "0\tstring\tMINE\tMy own format\n0\tstring\tYOURS\tYours\n")
    sandbox.files.write("f", b"MINE")
    result = sandbox.commands.run("file -C -m my.magic && file -m my.magic.mgc f")
    assert (result.stdout, result.stderr) == ("f: My own format\n", "")


def test_a_missing_file_is_no_error_unless_asked(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("file missing; echo $?; file -E missing; echo $?")
    assert result.stdout.splitlines()[:2] == [
        "missing: cannot open `missing' (No such file or directory)",
        "0",
    ]
    assert result.stdout.endswith("1\n")


def test_programs_of_the_image(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("file -b /usr/bin/egrep; file -bi /etc/passwd")
    assert result.stdout == (
        "POSIX shell script, ASCII text executable\ntext/plain; charset=us-ascii\n"
    )


def test_many_files(sandbox: Sandbox) -> None:
    script = "mkdir d; for i in {1..300}; do echo $i > d/$i; done; file d/* | grep -c 'ASCII text'"
    assert sandbox.commands.run(script).stdout == "300\n"


def test_a_compressed_file_is_looked_into(sandbox: Sandbox) -> None:
    sandbox.files.write("f.gz", gzip.compress(b"#!/bin/sh\n", mtime=0))
    result = sandbox.commands.run("file -bz f.gz")
    assert result.stdout.startswith("POSIX shell script, ASCII text executable (gzip compressed")
