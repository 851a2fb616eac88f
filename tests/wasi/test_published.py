"""WASI programs that others published do real work, together with those of the image.

They come from npm packages, pinned by name, version and hash. Compiling one takes up to half a
minute of CPU time, once per machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wasi.registry import ESBUILD, PYTHON, RUNTIMES
from wasmsand import Sandbox, WasmDirError

pytestmark = pytest.mark.slow

PROGRAMS = {
    "esbuild": (ESBUILD, "esbuild.wasm"),  # Go
    "python": (PYTHON, "dist/python.wasm"),  # C, with its library included
    "sqlite3": (RUNTIMES, "dist/langs/sqlite.wasm"),  # C, from 2019: imports wasi_unstable
    "php": (RUNTIMES, "dist/langs/php-cgi-8.2.0.wasm"),  # C
    "ruby": (RUNTIMES, "dist/langs/ruby-3.2.0.wasm"),  # C, with its own Asyncify
    "clang": (RUNTIMES, "dist/langs/clang.wasm"),  # C++, from 2019: imports wasi_unstable
    "wasm-ld": (RUNTIMES, "dist/langs/wasm-ld.wasm"),
}


def directory_with(folder: Path, *names: str) -> Path:
    for name in names:
        package, member = PROGRAMS[name]
        shutil.copyfile(package.file(member), folder / f"{name}.wasm")
    return folder


@pytest.fixture
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox with the programs that the test's `programs` marker names."""
    marker = request.node.get_closest_marker("programs")
    directory = directory_with(tmp_path, *marker.args)
    with Sandbox(wasm_dir=directory, timeout_ms=120_000) as sandbox:
        yield sandbox


def run(sandbox: Sandbox, script: str, stdin: str = "") -> str:
    result = sandbox.commands.run(script, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.programs("sqlite3")
def test_sqlite_keeps_a_database(sandbox: Sandbox) -> None:
    run(sandbox, 'seq 1000 | sed "s/.*/insert into t values(&);/" > rows.sql')
    output = run(
        sandbox,
        'sqlite3 db "create table t(n integer primary key); begin; $(cat rows.sql) commit;"\n'
        'sqlite3 -csv db "select count(*), sum(n), max(n) from t where n % 7 = 0" | tr , " "\n'
        "head -c 15 db",
    )
    assert output == "142 71071 994\nSQLite format 3"


@pytest.mark.programs("python")
def test_python_works_on_files_and_pipes(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "count.py",
        "import collections, json, re, sys\n"
        "words = re.findall(r'[a-z]+', sys.stdin.read().lower())\n"
        "top = collections.Counter(words).most_common(2)\n"
        "json.dump(dict(top), open('top.json', 'w'))\n"
        "print(sum(n for _, n in top))\n",
    )
    output = run(
        sandbox,
        "printf 'a b a\\nB a c\\n%.0s' {1..100} | python count.py | tee sum; cat top.json; "
        'mkdir -p sub; cd sub; echo \'print(open("../top.json").read() == '
        'open("/home/user/top.json").read())\' | python -',
    )
    assert output == '500\n{"a": 300, "b": 200}True\n'
    assert sandbox.commands.run("python -c 'import sys; sys.exit(3)'").exit_code == 3
    failed = sandbox.commands.run("python -c 'open(\"/nowhere\")' | cat; echo ${PIPESTATUS[0]}")
    assert failed.stdout == "1\n"
    assert "FileNotFoundError" in failed.stderr


@pytest.mark.programs("esbuild")
def test_esbuild_bundles_a_tree_of_modules(sandbox: Sandbox) -> None:
    sandbox.files.write("src/main.ts", 'import {square} from "./math/square";\n'
                        "const n: number = square(4);\nexport default n;\n")  # fmt: skip
    sandbox.files.write(
        "src/math/square.ts", "export function square(n: number): number { return n * n }\n"
    )
    output = run(
        sandbox,
        "esbuild src/main.ts --bundle --format=esm --outfile=out/main.js --log-level=error && "
        "grep -c function out/main.js; echo 'let x: number = 1 + 1' | esbuild --loader=ts --minify",
    )
    assert output == "1\nlet x=2;\n"
    broken = sandbox.commands.run("echo 'let = ;' | esbuild")
    assert broken.exit_code == 1
    assert "Unexpected" in broken.stderr


@pytest.mark.programs("php")
def test_php_renders_a_page(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "page.php",
        "<?php foreach (file('names.txt', FILE_IGNORE_NEW_LINES) as $n) "
        "echo '<li>', htmlspecialchars(ucfirst($n)), '</li>', PHP_EOL;",
    )
    output = run(sandbox, "printf 'ann\\nb<b\\n' > names.txt; php -q page.php | sort -r")
    assert output == "<li>B&lt;b</li>\n<li>Ann</li>\n"


@pytest.mark.programs("ruby")
def test_ruby_filters_a_pipe(sandbox: Sandbox) -> None:
    script = "puts STDIN.each_line.map(&:to_i).select(&:even?).sum; STDERR.puts 'done'"
    sandbox.files.write("even.rb", script)
    result = sandbox.commands.run("seq 100 | ruby even.rb | tr 0-9 a-j")
    assert (result.stdout, result.stderr) == ("cffa\n", "done\n")
    rescued = run(sandbox, "ruby -e 'begin; Integer(\"x\"); rescue => e; puts e.message; end'")
    assert rescued == 'invalid value for Integer(): "x"\n'


@pytest.mark.programs("clang", "wasm-ld")
def test_clang_compiles_a_program_that_then_runs(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "sum.c",
        '__attribute__((import_module("wasi_unstable"), import_name("proc_exit")))\n'
        "void leave(int code);\n"
        "int sum(int n) { return n ? n + sum(n - 1) : 0; }\n"
        "void _start(void) { leave(sum(10)); }\n",
    )
    built = sandbox.commands.run(
        "clang -cc1 -triple wasm32-unknown-wasi -emit-obj -O1 -o sum.o sum.c && "
        "wasm-ld --allow-undefined sum.o -o sum && chmod +x sum && ./sum"
    )
    assert (built.exit_code, built.stdout) == (55, ""), built.stderr


def test_a_program_with_imports_of_its_own_is_refused_by_name(tmp_path: Path) -> None:
    quickjs = RUNTIMES.file("dist/langs/wasmedge_quickjs.wasm")
    shutil.copyfile(quickjs, tmp_path / "qjs.wasm")
    with pytest.raises(WasmDirError, match=r"qjs\.wasm: unknown import: .*sock_open") as at:
        Sandbox(wasm_dir=tmp_path)
    assert at.value.path == str(tmp_path / "qjs.wasm")
