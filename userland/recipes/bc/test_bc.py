"""bc and dc: numbers of any length, bc's library, programs, errors."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.parametrize(
    ("expression", "stdout"),
    [
        ("1 + 2 * 3", "7\n"),
        ("scale=10; 1/3", ".3333333333\n"),
        ("2^100", "1267650600228229401496703205376\n"),
        ("obase=16; 255; ibase=2; 1010", "FF\nA\n"),
        ("scale=2; sqrt(2)", "1.41\n"),
        ("(3 > 2) && (1 == 1)", "1\n"),
        ("define f(n) { if (n < 2) return 1; return n*f(n-1); }\nf(20)", "2432902008176640000\n"),
        ("for (i = 0; i < 3; i++) print i, \" \"\nprint \"\\n\"", "0 1 2 \n"),
        ("a[3] = 7; a[3] * length(12345)", "35\n"),
        ("-7 % 3; -7 / 3", "-1\n-2\n"),
        ("last = 5; . + 1", "6\n"),
        ("/* a comment */ 10 /* another */ - 4 # and a third", "6\n"),
    ],
)  # fmt: skip
def test_bc(sandbox: Sandbox, expression: str, stdout: str) -> None:
    result = sandbox.commands.run("bc", stdin=expression + "\n")
    assert (result.stdout, result.stderr, result.exit_code) == (stdout, "", 0)


@pytest.mark.parametrize(
    ("expression", "stdout"),
    [
        ("4*a(1)", "3.14159265358979323844\n"),
        ("e(1)", "2.71828182845904523536\n"),
        ("l(10)", "2.30258509299404568401\n"),
        ("s(1); c(0)", ".84147098480789650665\n1.00000000000000000000\n"),
        ("scale=3; j(0, 1)", ".765\n"),
    ],
)
def test_its_library(sandbox: Sandbox, expression: str, stdout: str) -> None:
    result = sandbox.commands.run(f"echo '{expression}' | bc -l")
    assert (result.stdout, result.stderr) == (stdout, "")


def test_long_results_are_broken_unless_told(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("echo '2^300' | bc; echo '2^300' | BC_LINE_LENGTH=0 bc")
    whole = str(2**300)
    assert result.stdout == f"{whole[:68]}\\\n{whole[68:]}\n{whole}\n"


def test_a_program_in_a_file_and_its_input(sandbox: Sandbox) -> None:
    sandbox.files.write("sum.bc", "n = read()\nwhile (n) { t += n; n = read() }\nt\nquit\n")
    result = sandbox.commands.run("printf '1\\n2\\n3\\n0\\n' | bc -q sum.bc")
    assert (result.stdout, result.stderr) == ("6\n", "")


def test_errors_of_bc_do_not_end_it(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("printf '1/0\\n1 +\\nfoo(1)\\n2+2\\n' | bc")
    assert result.stdout == "4\n"
    assert result.stderr.splitlines() == [
        "Runtime error (func=(main), adr=3): Divide by zero",
        "(standard_in) 3: syntax error",
        "Runtime error (func=(main), adr=3): Function foo not defined.",
    ]


def test_a_missing_file(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("bc missing.bc")
    assert result.exit_code == 1
    assert "File missing.bc is unavailable." in result.stderr


def test_a_thousand_digits_of_pi(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "echo 'scale=1000; 4*a(1)' | BC_LINE_LENGTH=0 bc -l", timeout_ms=60_000
    )
    assert result.stdout.startswith("3.14159265358979323846264338327950288419716939937510")
    assert len(result.stdout) == 1003


@pytest.mark.parametrize(
    ("program", "stdout"),
    [
        ("2 3 + p", "5\n"),
        ("10 k 1 3 / p", ".3333333333\n"),
        ("16 o 255 p", "FF\n"),
        ("[la1+dsa*pla10>y]sy 0sa1 lyx", "1\n2\n6\n24\n120\n720\n5040\n40320\n362880\n3628800\n"),
        ("3 4 5 f", "5\n4\n3\n"),
        ("2 128 ^ p", f"{2**128}\n"),
        ("2 10 13 | p", f"{pow(2, 10, 13)}\n"),
        ("7 2 ~ f", "1\n3\n"),
        ("[hello]n 10P", "hello\n"),
        ("1 2 r p", "1\n"),
    ],
)
def test_dc(sandbox: Sandbox, program: str, stdout: str) -> None:
    result = sandbox.commands.run(["dc", "-e", program])
    assert (result.stdout, result.stderr, result.exit_code) == (stdout, "", 0)


def test_errors_of_dc(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("dc -e '+ p 1 0 / p'")
    assert result.stderr == "dc: stack empty\ndc: stack empty\ndc: divide by zero\n"


def test_a_command_from_dc(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("echo '!echo run' | dc").stdout == "run\n"


def test_versions(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("bc --version | head -n 1; dc --version | head -n 1")
    assert result.stdout == "bc 1.07.1\ndc (GNU bc 1.07.1) 1.4.1\n"
