"""`wasmsand bench`, which prints the numbers that documents show."""

from __future__ import annotations

import json

from tests.cli.command import wasmsand


def test_json_has_both_sides_and_memory() -> None:
    result = wasmsand("bench", "--quick", "--only", "echo hi", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    (row,) = report["rows"]
    assert row["name"] == "bash -c 'echo hi'"
    assert row["wasm"] > 0
    assert row["native"] > 0
    assert [memory["count"] for memory in report["memory"]] == [1, 10]
    assert report["versions"]["wasm"].startswith("bash 5.")


def test_a_cost_inside_the_shell_and_markdown() -> None:
    result = wasmsand("bench", "--quick", "--no-memory", "--only", "10,000 loop", "--markdown")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.decode().splitlines()
    assert lines[0] == "| | wasm | native | ratio |"
    assert lines[2].startswith("| `10,000 loop turns` | ")


def test_a_case_that_does_not_exist_is_named() -> None:
    result = wasmsand("bench", "--only", "nonsense")
    assert result.returncode == 2
    assert b"no case has 'nonsense' in its name" in result.stderr


def test_several_texts_choose_the_cases_of_all() -> None:
    texts = ("--only", "echo hi", "--only", "( : )")
    result = wasmsand("bench", "--quick", "--no-memory", *texts, "--json")
    assert result.returncode == 0, result.stderr
    assert [row["name"] for row in json.loads(result.stdout)["rows"]] == [
        "bash -c 'echo hi'",
        "( : )",
    ]
