"""Reads and writes that are longer than the pieces that the host copies."""

from __future__ import annotations

from wasmsand import Sandbox


def test_one_read_or_write_moves_all_of_a_long_block() -> None:
    # dd reports a short read as "0+1 records".
    with Sandbox() as sandbox:
        result = sandbox.commands.run("LC_ALL=C dd if=/dev/zero of=f bs=5M count=2; wc -c < f")
        again = sandbox.commands.run("LC_ALL=C dd if=f of=/dev/null bs=10M")
    assert result.stderr.splitlines()[:2] == ["2+0 records in", "2+0 records out"]
    assert result.stdout == "10485760\n"
    assert again.stderr.splitlines()[:2] == ["1+0 records in", "1+0 records out"]


def test_a_script_of_more_than_a_mebibyte_is_read_whole() -> None:
    with Sandbox() as sandbox:
        sandbox.files.write("long.sh", ": " + "x" * (3 << 20) + "\necho end\n")
        result = sandbox.commands.run(". ./long.sh")
    assert (result.stdout, result.stderr) == ("end\n", "")


def test_long_output_arrives_whole_through_a_pipe() -> None:
    with Sandbox() as sandbox:
        result = sandbox.commands.run("head -c 5000000 /dev/zero | dd bs=4M 2>/dev/null | wc -c")
    assert result.stdout == "5000000\n"


def test_a_reader_is_woken_while_the_writer_computes() -> None:
    with Sandbox(timeout_ms=60_000) as sandbox:
        result = sandbox.commands.run(
            "(echo a; while [ ! -e got ]; do :; done) | { read line; touch got; echo $line; }"
        )
    assert (result.exit_code, result.stdout) == (0, "a\n")


def test_a_writer_is_woken_while_the_reader_computes() -> None:
    # The pipe is full, the reader takes less than half of it, and the writer has one more byte.
    with Sandbox(timeout_ms=60_000) as sandbox:
        result = sandbox.commands.run(
            "(head -c 65537 /dev/zero; touch written) | "
            "{ head -c 8192 >/dev/null; while [ ! -e written ]; do :; done; wc -c; }"
        )
    assert (result.exit_code, result.stdout) == (0, f"{65537 - 8192}\n")
