"""tree: shapes of output, filters, and what it counts."""

from __future__ import annotations

import json

import pytest

from wasmsand import Sandbox


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    sandbox.files.write("p/src/main.c", "int main;\n")
    sandbox.files.write("p/src/é.h", "")
    sandbox.files.write("p/doc/a/deep.txt", "1234567890")
    sandbox.files.write("p/.hidden", "")
    sandbox.commands.run("ln -s src p/link")
    return sandbox


def test_the_plain_picture(project: Sandbox) -> None:
    result = project.commands.run("LC_ALL=C.UTF-8 tree p")
    assert (result.stdout, result.stderr) == (
        "p\n"
        "├── doc\n"
        "│\u00a0\u00a0 └── a\n"
        "│\u00a0\u00a0     └── deep.txt\n"
        "├── link -> src\n"
        "└── src\n"
        "    ├── main.c\n"
        "    └── é.h\n"
        "\n"
        "5 directories, 3 files\n",
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("-a -L 1 --noreport", ["p", ".hidden", "doc", "link -> src", "src"]),
        ("-d --noreport", ["p", "doc", "a", "link -> src", "src"]),
        ("-P '*.c' --prune --noreport", ["p", "src", "main.c"]),
        ("-I 'doc|*.h' --noreport", ["p", "link -> src", "src", "main.c"]),
        ("-L 1 -F --noreport", ["p/", "doc/", "link -> src/", "src/"]),
    ],
)
def test_filters(project: Sandbox, arguments: str, names: list[str]) -> None:
    result = project.commands.run(f"LC_ALL=C.UTF-8 tree --charset=ascii {arguments} p")
    assert [line.lstrip("|`- \u00a0") for line in result.stdout.splitlines()] == names


def test_full_paths_sizes_and_no_lines(project: Sandbox) -> None:
    result = project.commands.run("tree -if -s --noreport p/doc")
    lines = [line.split("]  ")[1] for line in result.stdout.splitlines()]
    assert lines == ["p/doc", "p/doc/a", "p/doc/a/deep.txt"]
    assert "[         10]  p/doc/a/deep.txt" in result.stdout


def test_json(project: Sandbox) -> None:
    root, report = json.loads(project.commands.run("tree -J p/doc").stdout)
    assert root["contents"][0]["contents"] == [{"type": "file", "name": "deep.txt"}]
    assert report == {"type": "report", "directories": 2, "files": 1}


def test_from_a_list_of_names(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "printf 'a/b\\na/c\\n' | tree --fromfile --charset=ascii --noreport"
    )
    assert [line.lstrip("|`- \u00a0") for line in result.stdout.splitlines()] == [
        ".",
        "a",
        "b",
        "c",
    ]


def test_a_missing_directory(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("tree missing")
    assert "missing  [error opening dir]" in result.stdout
    assert result.exit_code == 2


def test_many_files(sandbox: Sandbox) -> None:
    script = "mkdir -p d/{1..30}/{1..10}; touch d/{1..30}/{1..10}/{a,b,c}; tree d | tail -n 1"
    assert sandbox.commands.run(script).stdout == "331 directories, 900 files\n"
