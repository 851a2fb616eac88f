"""sqlite3: data in and out, the kinds of queries, and what happens when something fails."""

from __future__ import annotations

import json

import pytest

from wasmsand import Sandbox

PEOPLE = 'id,name,team\n1,Ada,red\n2,Bob,blue\n3,Cy,red\n4,"D, Eve",blue\n'
SCORES = "person,points\n1,10\n1,20\n2,5\n3,7.5\n9,1\n"


def run(sandbox: Sandbox, *arguments: str, stdin: str = "") -> str:
    """What a sqlite3 prints that has nothing to complain about."""
    result = sandbox.commands.run(["sqlite3", *arguments], stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.fixture
def shop(sandbox: Sandbox) -> Sandbox:
    sandbox.files.write("people.csv", PEOPLE)
    sandbox.files.write("scores.csv", SCORES)
    run(
        sandbox,
        "shop.db",
        stdin=".import --csv people.csv people\n.import --csv scores.csv scores\n",
    )
    return sandbox


def test_csv_in_and_reports_out(shop: Sandbox) -> None:
    query = (
        "SELECT team, count(*) AS n, sum(points) AS total FROM people JOIN scores ON person = id "
        "GROUP BY team ORDER BY total DESC"
    )
    assert run(shop, "-header", "-csv", "shop.db", query) == (
        "team,n,total\nred,3,37.5\nblue,1,5\n"
    )
    assert run(shop, "shop.db", query) == "red|3|37.5\nblue|1|5\n"
    assert json.loads(run(shop, "-json", "shop.db", query)) == [
        {"team": "red", "n": 3, "total": 37.5},
        {"team": "blue", "n": 1, "total": 5},
    ]
    assert run(shop, "-markdown", "shop.db", query) == (
        "| team | n | total |\n|------|---|-------|\n| red  | 3 | 37.5  |\n| blue | 1 | 5     |\n"
    )
    assert run(shop, "-box", "shop.db", "SELECT name FROM people WHERE id = 4") == (
        "┌────────┐\n│  name  │\n├────────┤\n│ D, Eve │\n└────────┘\n"
    )
    script = (
        ".mode insert people\nSELECT * FROM people WHERE id = '4';\n"
        ".mode quote\nSELECT x'00ff', NULL, 'it''s';"
    )
    assert run(shop, "shop.db", stdin=script) == (
        "INSERT INTO people VALUES('4','D, Eve','blue');\nX'00ff',NULL,'it''s'\n"
    )


@pytest.mark.parametrize(
    ("query", "stdout"),
    [
        (
            "SELECT name, coalesce(sum(points), 0) FROM people LEFT JOIN scores ON person = id "
            "GROUP BY id",
            "Ada|30\nBob|5\nCy|7.5\nD, Eve|0\n",
        ),
        (
            "SELECT p.name, s.person FROM people p FULL JOIN scores s ON s.person = p.id "
            "WHERE p.id IS NULL OR s.person IS NULL",
            "D, Eve|\n|9\n",
        ),
        (
            "SELECT name, row_number() OVER (PARTITION BY team ORDER BY name), "
            "lag(name) OVER w, first_value(name) OVER w FROM people WINDOW w AS (ORDER BY id) "
            "ORDER BY id",
            "Ada|1||Ada\nBob|1|Ada|Ada\nCy|2|Bob|Ada\nD, Eve|2|Cy|Ada\n",
        ),
        (
            "WITH RECURSIVE f(a, b) AS (VALUES (0, 1) UNION ALL SELECT b, a + b FROM f LIMIT 50) "
            "SELECT max(a) FROM f",
            "7778742049\n",
        ),
        ("SELECT group_concat(name, '; ') FILTER (WHERE team = 'red') FROM people", "Ada; Cy\n"),
        ('SELECT name FROM people WHERE name LIKE "d%" COLLATE NOCASE', "D, Eve\n"),
    ],
)
def test_queries(shop: Sandbox, query: str, stdout: str) -> None:
    assert run(shop, "shop.db", query) == stdout


@pytest.mark.parametrize(
    ("query", "stdout"),
    [
        (
            "SELECT sqrt(2), pow(2, 0.5) = sqrt(2), round(pi(), 5), log10(1000), 7 % 3",
            "1.4142135623731|1|3.14159|3.0|1\n",
        ),
        ("SELECT json_extract('{\"a\":[1,{\"b\":2}]}', '$.a[1].b'), '{\"x\":5}' ->> 'x'", "2|5\n"),
        ("SELECT sum(value) FROM json_each('[1,2,3]')", "6\n"),
        (
            "SELECT hex(jsonb('[1]')), json_group_array(value) FROM generate_series(1, 3)",
            "2B1331|[1,2,3]\n",
        ),
        ("SELECT date('2024-02-28', '+2 days'), strftime('%j', '2024-12-31')", "2024-03-01|366\n"),
        ("SELECT unixepoch('2024-01-01'), typeof(julianday('now'))", "1704067200|real\n"),
        (
            "SELECT printf('%,d|%.3f|%s', 1234567, 2.5, 'é'), length('é€'), upper('abc')",
            "1,234,567|2.500|é|2|ABC\n",
        ),
        ("SELECT 'abc123' REGEXP '^[a-z]+[0-9]{3}$', soundex('Robert')", "1|R163\n"),
        (
            "SELECT 9223372036854775807 + 1, 1 / 0, 10 / 4, 10 / 4.0",
            "9.22337203685478e+18||2|2.5\n",
        ),
        ("SELECT hex(sha3('a', 256)) LIKE '80084BF2FBA02475%', hex(zeroblob(2))", "1|0000\n"),
    ],
)
def test_functions(sandbox: Sandbox, query: str, stdout: str) -> None:
    assert run(sandbox, ":memory:", query) == stdout


def test_full_text_search_and_r_trees(sandbox: Sandbox) -> None:
    script = """
    CREATE VIRTUAL TABLE docs USING fts5(title, body, tokenize = 'porter unicode61');
    INSERT INTO docs VALUES ('one', 'the quick brown foxes'), ('two', 'dogs'), ('drei', 'Ärger');
    SELECT title, snippet(docs, 1, '[', ']', '..', 3) FROM docs
        WHERE docs MATCH 'fox OR arger' ORDER BY title;
    CREATE VIRTUAL TABLE old USING fts4(x); INSERT INTO old VALUES ('alpha beta'), ('gamma');
    SELECT x FROM old WHERE old MATCH 'bet*';
    CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1, y0, y1);
    INSERT INTO boxes VALUES (1, 0, 10, 0, 10), (2, 20, 30, 20, 30);
    SELECT id FROM boxes WHERE x0 < 25 AND x1 > 25 AND y0 < 25 AND y1 > 25;
    CREATE VIRTUAL TABLE shapes USING geopoly(label);
    INSERT INTO shapes(label, _shape) VALUES ('square', '[[0,0],[4,0],[4,4],[0,4],[0,0]]');
    SELECT label, geopoly_area(_shape) FROM shapes WHERE geopoly_contains_point(_shape, 1, 1);
    """
    assert run(sandbox, "search.db", stdin=script) == (
        "drei|[Ärger]\none|..quick brown [foxes]\nalpha beta\n2\nsquare|16.0\n"
    )


def test_dump_backup_and_attach(shop: Sandbox) -> None:
    run(
        shop,
        "shop.db",
        "CREATE VIEW reds AS SELECT * FROM people WHERE team = 'red'; "
        "CREATE INDEX by_person ON scores(person);",
    )
    shop.commands.run("sqlite3 shop.db .dump | sqlite3 copy.db")
    run(shop, "shop.db", ".backup saved.db", "VACUUM INTO 'small.db'")
    for name in ("copy.db", "saved.db", "small.db"):
        script = (
            f"ATTACH '{name}' AS other; "
            "SELECT count(*) FROM (SELECT * FROM main.people EXCEPT SELECT * FROM other.people); "
            "SELECT count(*) FROM other.reds; PRAGMA other.integrity_check;"
        )
        assert run(shop, "shop.db", script) == "0\n2\nok\n"
    assert run(shop, "shop.db", ".tables", ".schema reds") == (
        "people  reds    scores\n"
        "CREATE VIEW reds AS SELECT * FROM people WHERE team = 'red'\n"
        "/* reds(id,name,team) */;\n"
    )
    assert (
        run(
            shop,
            "saved.db",
            "DROP TABLE people;",
            ".restore shop.db",
            "SELECT count(*) FROM people",
        )
        == "4\n"
    )


def test_files_and_commands_from_within(shop: Sandbox) -> None:
    script = (
        ".once out.txt\nSELECT name FROM people LIMIT 1;\n"
        "SELECT writefile('blob', x'0102ff'), hex(readfile('blob'));\n"
        ".shell echo from the shell\n"
        ".output '|tr a-z A-Z'\nSELECT team FROM people WHERE id = 1;\n.output\n"
        ".parameter set :id 2\nSELECT name FROM people WHERE id = :id;\n"
        ".import '|printf \"5,Fay,red\\n\"' people --csv\nSELECT count(*) FROM people;\n"
    )
    assert run(shop, "shop.db", stdin=script) == "3|0102FF\nfrom the shell\nRED\nBob\n5\n"
    assert shop.files.read("out.txt") == b"Ada\n"


def test_a_big_table(sandbox: Sandbox) -> None:
    script = """
    CREATE TABLE big(id INTEGER PRIMARY KEY, k INTEGER, s TEXT);
    BEGIN;
    INSERT INTO big
        SELECT value, (value * 7919) % 10007, printf('row %d', value)
        FROM generate_series(1, 200000);
    COMMIT;
    CREATE INDEX by_k ON big(k);
    SELECT count(*), count(DISTINCT k), sum(length(s)) FROM big;
    SELECT count(*) FROM big WHERE k BETWEEN 100 AND 199;
    DELETE FROM big WHERE id % 2; VACUUM;
    SELECT count(*), s FROM big ORDER BY k, id LIMIT 1;
    PRAGMA integrity_check;
    SELECT name FROM dbstat WHERE pageno = 1;
    """
    assert run(sandbox, "big.db", stdin=script) == (
        "200000|10007|1888895\n1999\n100000|row 2\nok\nsqlite_schema\n"
    )


def test_errors(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "sqlite3 e.db 'SELEC 1'; echo $?; sqlite3 e.db 'SELECT * FROM missing'; echo $?"
    )
    assert result.stdout == "1\n1\n"
    assert result.stderr == (
        'Error: in prepare, near "SELEC": syntax error\n  SELEC 1\n  ^--- error here\n'
        "Error: in prepare, no such table: missing\n"
    )
    script = (
        "CREATE TABLE t(x UNIQUE); INSERT INTO t VALUES(1);\n"
        "INSERT INTO t VALUES(1);\nSELECT 'went on';\n"
    )
    result = sandbox.commands.run(["sqlite3", "e.db"], stdin=script)
    assert (result.exit_code, result.stdout) == (1, "went on\n")
    assert result.stderr == "Runtime error near line 2: UNIQUE constraint failed: t.x (19)\n"
    result = sandbox.commands.run(["sqlite3", "-bail", "e.db"], stdin=script)
    assert (result.exit_code, result.stdout) == (1, "")
    sandbox.files.write("text.db", "This is no database, though it is long enough.\n" * 40)
    result = sandbox.commands.run(["sqlite3", "text.db", "SELECT 1 FROM sqlite_schema"])
    assert result.exit_code == 26
    assert result.stderr == "Error: in prepare, file is not a database (26)\n"
    result = sandbox.commands.run("chmod 444 e.db; sqlite3 e.db 'INSERT INTO t VALUES(2)'")
    assert result.stderr == "Error: stepping, attempt to write a readonly database (8)\n"
    result = sandbox.commands.run(["sqlite3", "/none/x.db", "CREATE TABLE t(x)"])
    assert (
        result.stderr
        == 'Error: unable to open database "/none/x.db": unable to open database file\n'
    )


def test_version_and_help(sandbox: Sandbox) -> None:
    assert run(sandbox, "-version").startswith("3.46.1 2024-08-13 ")
    result = sandbox.commands.run(["sqlite3", "-help"])
    assert "Usage: sqlite3 [OPTIONS] [FILENAME [SQL]]" in result.stdout + result.stderr
