"""sqlite3: databases stay whole when processes are killed, disks full, or writers many."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox

MANY_ROWS = "INSERT INTO t SELECT value, hex(randomblob(50)) FROM generate_series(1, 20000);"
JOURNAL_MODES = ["delete", "truncate", "persist", "wal"]


def query(sandbox: Sandbox, sql: str) -> str:
    result = sandbox.commands.run(["sqlite3", "-cmd", ".timeout 10000", "t.db", sql])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def kill_a_writer(sandbox: Sandbox, sql: str) -> None:
    """Kill sqlite3 when it has run these statements, before it ends by itself."""
    script = f"""
    mkfifo commands
    sqlite3 t.db < commands > started & writer=$!
    exec 5> commands
    echo "{sql} SELECT 'written';" >&5
    until grep -qs written started; do sleep 0.01; done
    kill -KILL $writer
    wait $writer
    echo $?
    """
    assert sandbox.commands.run(script).stdout == "137\n"


@pytest.fixture(params=JOURNAL_MODES)
def mode(sandbox: Sandbox, request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    setup = f"PRAGMA journal_mode={mode}; CREATE TABLE t(id, s); INSERT INTO t VALUES (0, 'kept');"
    assert query(sandbox, setup) == f"{mode}\n"
    return mode


def test_a_transaction_killed_midway_leaves_no_trace(sandbox: Sandbox, mode: str) -> None:
    # A small cache, so that half of the transaction is in the file when the end comes.
    kill_a_writer(sandbox, f"PRAGMA cache_size=10; PRAGMA cache_spill=1; BEGIN; {MANY_ROWS}")
    assert sandbox.files.exists("t.db-wal" if mode == "wal" else "t.db-journal")
    assert query(sandbox, "SELECT * FROM t; PRAGMA integrity_check;") == "0|kept\nok\n"


def test_what_was_committed_before_a_kill_is_there(sandbox: Sandbox, mode: str) -> None:
    kill_a_writer(sandbox, "INSERT INTO t VALUES (1, 'committed');")
    assert query(sandbox, "SELECT * FROM t; PRAGMA integrity_check;") == "0|kept\n1|committed\nok\n"


@pytest.mark.parametrize("mode", JOURNAL_MODES)
def test_a_full_disk_is_an_error_and_leaves_the_old_content(mode: str) -> None:
    with Sandbox(fs_limit_bytes=16 << 20) as sandbox:
        setup = "CREATE TABLE t(id, s); INSERT INTO t VALUES (0, 'kept');"
        query(sandbox, f"PRAGMA journal_mode={mode}; {setup}")
        sandbox.files.write("filler", bytes(15 << 20))
        result = sandbox.commands.run(["sqlite3", "t.db", f"PRAGMA cache_size=10; {MANY_ROWS}"])
        assert result.exit_code == 13
        assert result.stderr == "Error: stepping, database or disk is full (13)\n"
        assert query(sandbox, "SELECT * FROM t; PRAGMA integrity_check;") == "0|kept\nok\n"
        sandbox.files.rm("filler")
        query(sandbox, MANY_ROWS)
        assert query(sandbox, "SELECT count(*) FROM t; PRAGMA integrity_check;") == "20001\nok\n"


def test_many_writers_take_turns(sandbox: Sandbox, mode: str) -> None:
    script = """
    sqlite3 t.db 'CREATE TABLE counter(n); INSERT INTO counter VALUES (0)'
    for writer in 1 2 3 4; do
        (
            for turn in 1 2 3 4 5; do echo 'UPDATE counter SET n = n + 1;'; done |
                sqlite3 -cmd '.timeout 20000' t.db
        ) &
    done
    wait
    """
    result = sandbox.commands.run(script)
    assert (result.stdout, result.stderr) == ("", "")
    assert query(sandbox, "SELECT n FROM counter; PRAGMA integrity_check;") == "20\nok\n"


def test_a_lock_is_waited_for_or_told(sandbox: Sandbox, mode: str) -> None:
    script = """
    mkfifo commands
    # With a timeout of its own: whoever waits for the lock looks at the file now and then.
    sqlite3 -cmd '.timeout 20000' t.db < commands > held &
    exec 5> commands
    echo "BEGIN IMMEDIATE; INSERT INTO t VALUES (1, 'first'); SELECT 'held';" >&5
    until grep -qs held held; do sleep 0.01; done
    sqlite3 t.db 'SELECT count(*) FROM t'
    sqlite3 t.db "INSERT INTO t VALUES (2, 'refused')"
    echo status $?
    sqlite3 -cmd '.timeout 20000' t.db "INSERT INTO t VALUES (3, 'patient')" & patient=$!
    echo "COMMIT;" >&5
    exec 5>&-
    wait
    """
    result = sandbox.commands.run(script)
    assert result.stdout == "1\nstatus 5\n"
    assert result.stderr == "Error: stepping, database is locked (5)\n"
    assert query(sandbox, "SELECT id FROM t") == "0\n1\n3\n"


def test_readers_of_a_wal_keep_their_snapshot(sandbox: Sandbox) -> None:
    query(sandbox, "PRAGMA journal_mode=wal; CREATE TABLE t(id); INSERT INTO t VALUES (1);")
    script = """
    mkfifo commands
    sqlite3 t.db < commands > seen & reader=$!
    exec 5> commands
    echo "BEGIN; SELECT count(*) FROM t;" >&5
    until grep -qs 1 seen; do sleep 0.01; done
    sqlite3 t.db 'INSERT INTO t SELECT value FROM generate_series(2, 5000)'
    sqlite3 t.db 'PRAGMA wal_checkpoint'
    echo "SELECT count(*) FROM t; COMMIT; SELECT count(*) FROM t;" >&5
    exec 5>&-
    wait $reader
    cat seen
    """
    result = sandbox.commands.run(script)
    assert result.stderr == ""
    assert result.stdout.splitlines()[-3:] == ["1", "1", "5000"]
    assert query(sandbox, "PRAGMA integrity_check") == "ok\n"
    assert not sandbox.files.exists("t.db-wal")
