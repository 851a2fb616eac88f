"""jq: filters as agents write them, its options, its errors, its regular expressions."""

from __future__ import annotations

import json

import pytest

from wasmsand import Sandbox

PEOPLE = """[
  {"name": "Ada", "age": 36, "tags": ["math", "code"], "at": {"city": "London"}},
  {"name": "Zoë", "age": 29, "tags": [], "at": null},
  {"name": "Bob", "age": 36, "tags": ["code"], "at": {"city": "Oslo"}}
]
"""


@pytest.mark.parametrize(
    ("arguments", "stdout"),
    [
        ("-r '.[].name'", "Ada\nZoë\nBob\n"),
        ("-c 'map(.age) | [add, length, max]'", "[101,3,36]\n"),
        ("-c 'group_by(.age) | map({age: .[0].age, n: length})'",
         '[{"age":29,"n":1},{"age":36,"n":2}]\n'),
        ("-r '.[] | select(.tags | index(\"code\")) | .name'", "Ada\nBob\n"),
        ("-r '.[] | [.name, .age, (.tags | join(\"+\"))] | @csv'",
         '"Ada",36,"math+code"\n"Zoë",29,""\n"Bob",36,"code"\n'),
        ("-r '.[] | [.name, .at.city // \"nowhere\"] | @tsv'",
         "Ada\tLondon\nZoë\tnowhere\nBob\tOslo\n"),
        ("-r 'sort_by(.age, .name) | .[].name'", "Zoë\nAda\nBob\n"),
        ("'[.[].tags[]] | unique | length'", "2\n"),
        ("-c '[paths(type == \"string\")] | length'", "8\n"),
        ("-c 'map({(.name): .age}) | add'", '{"Ada":36,"Zoë":29,"Bob":36}\n'),
        ("-ac '.[1].name'", '"Zo\\u00eb"\n'),
        ("-c --arg n Bob '.[] | select(.name == $n) | .at'", '{"city":"Oslo"}\n'),
        ("-c --argjson limit 30 'map(select(.age < $limit).name)'", '["Zoë"]\n'),
        ("-Sc '.[0] | del(.tags)'", '{"age":36,"at":{"city":"London"},"name":"Ada"}\n'),
        ("--tab '.[2].tags'", '[\n\t"code"\n]\n'),
        ("-r '.[] | \"\\(.name) is \\(.age)\"'", "Ada is 36\nZoë is 29\nBob is 36\n"),
        ("-r '.[0] | @json, @base64 \"\\(.name)\", @uri \"\\(.at.city)?\"'",
         '{"name":"Ada","age":36,"tags":["math","code"],"at":{"city":"London"}}\nQWRh\nLondon?\n'),
        ("-j '.[].age'", "362936"),
        ("-c 'reduce .[] as {age: $a} ({}; .[$a | tostring] += 1)'", '{"36":2,"29":1}\n'),
        ("-c '[limit(2; .[] | .name | ascii_downcase)]'", '["ada","zoë"]\n'),
        ("-c 'to_entries | map(.key)'", "[0,1,2]\n"),
        ("-c '[.[] | try error(.name) catch length]'", "[3,3,3]\n"),
        ("-r 'first(.[] | select(.at == null)) | .name | explode | implode'", "Zoë\n"),
    ],
)  # fmt: skip
def test_filters(sandbox: Sandbox, arguments: str, stdout: str) -> None:
    sandbox.files.write("people.json", PEOPLE)
    result = sandbox.commands.run(f"jq {arguments} people.json")
    assert (result.stdout, result.stderr, result.exit_code) == (stdout, "", 0)


@pytest.mark.parametrize(
    ("program", "output"),
    [
        ('"aXbxc" | [splits("x"; "i")]', ["a", "b", "c"]),
        ('"2024-05-17" | capture("(?<y>\\\\d+)-(?<m>\\\\d+)")', {"y": "2024", "m": "05"}),
        ('"größer" | test("^\\\\p{L}+$")', True),
        ('"foo bar" | sub("(?<w>\\\\w+)"; "<\\(.w)>")', "<foo> bar"),
        ('"foo bar" | gsub("o+|a"; "_")', "f_ b_r"),
        ('"abcb" | [match("b"; "g").offset]', [1, 3]),
        ('"a1b22" | [scan("\\\\d+")]', ["1", "22"]),
        ("[1, 4, 9] | map(sqrt)", [1, 2, 3]),
        ("[pow(2; 10), (10 | log10), (1 | exp | floor), (-1.5 | fabs)]", [1024, 1, 2, 1.5]),
        ("[0.1 + 0.2, 3.0, (7 / 2 | round), infinite]", [0.30000000000000004, 3.0, 4, 1.7976931348623157e308]),  # noqa: E501
        ('"2015-03-05T23:51:47Z" | fromdate', 1425599507),
        ("1425599621 | todate", "2015-03-05T23:53:41Z"),
        ('0 | strftime("%A, %B %d, %Y")', "Thursday, January 01, 1970"),
        ('"10:20 3 Mar 2020" | strptime("%H:%M %d %b %Y") | mktime', 1583230800),
        ("[limit(3; range(10))]", [0, 1, 2]),
        ("[range(0; 10; 3)] | @json", "[0,3,6,9]"),
        ('"x" * 3 | ltrimstr("x") | ascii_upcase', "XX"),
        ("def f: if . > 1 then . * (. - 1 | f) else 1 end; 10 | f", 3628800),
        ("[1, [2, [3]]] | flatten", [1, 2, 3]),
        ("input_line_number | type", "number"),
        ('[{"a": {"b": 1}} | getpath(["a", "b"]), tostream]', [1, [["a", "b"], 1], [["a", "b"]], [["a"]]]),  # noqa: E501
        ("$ENV.SPECIAL + env.SPECIAL", "yesyes"),
    ],
)  # fmt: skip
def test_expressions(sandbox: Sandbox, program: str, output: object) -> None:
    result = sandbox.commands.run(["jq", "-n", program], env={"SPECIAL": "yes"})
    assert result.stderr == ""
    assert json.loads(result.stdout) == output


def test_it_reads_many_values_from_a_pipe(sandbox: Sandbox) -> None:
    script = "seq 5 | jq -s add; seq 5 | jq -n '[inputs] | length'; seq 3 | jq -c '[., input?]'"
    assert sandbox.commands.run(script).stdout == "15\n5\n[1,2]\n[3]\n"


def test_it_reads_raw_lines_and_null_input(sandbox: Sandbox) -> None:
    script = "printf 'a b\\nc\\n' | jq -Rc 'split(\" \")'; printf 'x\\ny' | jq -Rs ."
    assert sandbox.commands.run(script).stdout == '["a","b"]\n["c"]\n"x\\ny"\n'


def test_positional_and_file_arguments(sandbox: Sandbox) -> None:
    sandbox.files.write("extra.json", '{"k": [1]} {"k": [2]}')
    script = (
        "jq -nc '$ARGS.positional' --args a b; jq -nc '[$f[].k[]]' --slurpfile f extra.json; "
        "jq -n '$t | length' --rawfile t extra.json"
    )
    assert sandbox.commands.run(script).stdout == '["a","b"]\n[1,2]\n21\n'


def test_a_program_in_a_file_and_a_module(sandbox: Sandbox) -> None:
    sandbox.files.write("lib/text.jq", 'def shout: ascii_upcase + "!";\n')
    sandbox.files.write("main.jq", 'import "text" as text; # a comment\n.[] | text::shout\n')
    result = sandbox.commands.run("echo '[\"hi\"]' | jq -L lib -f main.jq")
    assert (result.stdout, result.stderr) == ('"HI!"\n', "")


def test_streaming_and_sequences(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "echo '{\"a\":[1]}' | jq -c --stream .; jq -n --seq 1 | od -An -c"
    )
    assert result.stdout == '[["a",0],1]\n[["a",0]]\n[["a"]]\n 036   1  \\n\n'


def test_colours(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("jq -nC '[null, \"s\"]' | cat -v | head -n 2")
    assert result.stdout == "^[[1;39m[\n  ^[[0;90mnull^[[0m^[[1;39m,\n"


@pytest.mark.parametrize(
    ("command", "status", "stderr"),
    [
        ("echo '{\"a\": tru}' | jq .", 5,
         "jq: parse error: Invalid literal at line 1, column 10\n"),
        ("echo '[1,' | jq .", 5,
         "jq: parse error: Unfinished JSON term at EOF at line 2, column 0\n"),
        ("jq -n '.a['", 3,
         "jq: error: syntax error, unexpected end of file (Unix shell quoting issues?) "
         "at <top-level>, line 1:\n"
         ".a[  \njq: 1 compile error\n"),
        ("jq -n 'nonsense'", 3,
         "jq: error: nonsense/0 is not defined at <top-level>, line 1:\n"
         "nonsense\njq: 1 compile error\n"),
        ("echo 5 | jq '.a'", 5, 'jq: error (at <stdin>:1): Cannot index number with string "a"\n'),
        ("jq -n '1 + {}'", 5,
         "jq: error (at <unknown>): number (1) and object ({}) cannot be added\n"),
        ("jq . missing.json", 2,
         "jq: error: Could not open file missing.json: No such file or directory\n"),
        ("jq -n 'error(\"mine\")'", 5, "jq: error (at <unknown>): mine\n"),
        ("jq -n '\"a\" | test(\"(\")'", 5,
         "jq: error (at <unknown>): Regex failure: end pattern with unmatched parenthesis\n"),
        ("echo null | jq -e .", 1, ""),
        ("jq -n '{a: 1} | halt_error'", 5, '{"a":1}\n'),
        ("jq -n '\"bye\\n\" | halt_error(7)'", 7, "bye\n"),
    ],
)  # fmt: skip
def test_errors(sandbox: Sandbox, command: str, status: int, stderr: str) -> None:
    result = sandbox.commands.run(command)
    assert (result.exit_code, result.stderr) == (status, stderr)


def test_numbers_keep_their_digits(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "echo '[100000000000000000000000001, 1.000]' | jq -c '., map(. + 0)'"
    )
    assert result.stdout == "[100000000000000000000000001,1.000]\n[1e+26,1]\n"


def test_a_large_document(sandbox: Sandbox) -> None:
    rows = [{"id": n, "name": f"row {n}", "even": n % 2 == 0} for n in range(100_000)]
    sandbox.files.write("big.json", json.dumps(rows))
    result = sandbox.commands.run(
        "jq '[.[] | select(.even)] | length, .[-1].name' big.json", timeout_ms=120_000
    )
    assert (result.stdout, result.stderr) == ('50000\n"row 99998"\n', "")


def test_deep_nesting(sandbox: Sandbox) -> None:
    # The parser and the printer stop at 256 levels; a tail call needs no stack.
    script = (
        "printf '[%.0s' {1..300} | jq .; jq -nc 'reduce range(9000) as $i (0; [.])' | wc -c; "
        "jq -n 'def f: if . < 100000 then . + 1 | f else . end; 0 | f'"
    )
    result = sandbox.commands.run(script, timeout_ms=60_000)
    assert result.stdout == "534\n100000\n"
    assert result.stderr == (
        "jq: parse error: Exceeds depth limit for parsing at line 1, column 257\n"
    )


def test_version_and_help(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("jq --version").stdout == "jq-1.7.1\n"
    help_text = sandbox.commands.run("jq --help").stdout
    assert help_text.startswith("jq - commandline JSON processor [version 1.7.1]\n\nUsage:\tjq")
    assert sandbox.commands.run("jq --nonsense").exit_code == 2
