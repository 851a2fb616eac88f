"""Functions of preview 1: for each a small C program checks the behaviour as a guest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from tests.wasi.zig import all_programs, compiled, functions_of
from wasmsand import Sandbox
from wasmsand.abi.wasi.table import FUNCTIONS, HOST_FUNCTIONS
from wasmsand.engine import default_engine

Install = Callable[..., None]

CHECKING_THEMSELVES = [
    "clocks", "directory", "escape", "flags", "links", "metadata", "names", "opening",
    "path_metadata", "poll_clocks", "positions", "random", "read_write", "renumber", "rights",
    "room", "sockets",
]  # fmt: skip


@pytest.mark.parametrize("name", CHECKING_THEMSELVES)
def test_a_test_program_passes(sandbox: Sandbox, install: Install, name: str) -> None:
    install(name)
    result = sandbox.commands.run(name)
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)


@pytest.mark.parametrize("name", [name for name in all_programs() if functions_of(name)])
def test_a_test_program_calls_the_function_that_it_tests(name: str) -> None:
    engine = default_engine()
    engine.offer(HOST_FUNCTIONS)
    wasm = compiled(name).read_bytes()
    imports = engine.load(hashlib.sha256(wasm).hexdigest(), lambda: wasm).imports
    imported = {function for _, function in imports}
    assert functions_of(name) - imported == set()


def test_every_function_has_a_program() -> None:
    tested = {function for name in all_programs() for function in functions_of(name)}
    assert {row.name for row in FUNCTIONS} - tested == set()
    assert tested - {row.name for row in FUNCTIONS} == set()


def test_arguments_and_environment_are_the_shells(sandbox: Sandbox, install: Install) -> None:
    install("arguments")
    result = sandbox.commands.run(
        "cd /tmp; env -i A=1 'B=two words' EMPTY= PWD=/lies arguments '' 'a b' ü"
    )
    assert result.stdout == "arguments\n\na b\nü\nA=1\nB=two words\nEMPTY=\nPWD=/tmp\n"


def test_preopens_are_the_working_directory_and_the_root_and_its_parts(
    sandbox: Sandbox, install: Install
) -> None:
    install("preopens")
    result = sandbox.commands.run("preopens")
    names = result.stdout.split()
    assert (result.stderr, result.exit_code) == ("", 0)
    assert names[:2] == [".", "/"]
    assert names[-4:] == ["..", "../..", "../../..", "."]
    assert {"/usr", "/etc", "/home", "/tmp", "/bin", "/proc"} <= set(names)


def test_files_are_polled(sandbox: Sandbox, install: Install) -> None:
    install("poll_files")
    result = sandbox.commands.run("{ sleep 0.5; printf go; } | poll_files")
    assert (result.stderr, result.exit_code) == ("", 0)


def test_nonblocking_files_do_not_wait(sandbox: Sandbox, install: Install) -> None:
    install("nonblocking")
    result = sandbox.commands.run("mkfifo fifo; sleep 5 | { nonblocking; echo $?; kill $$; }")
    assert (result.stdout, result.stderr) == ("0\n", "")


@pytest.mark.parametrize(("code", "status"), [(0, 0), (7, 7), (255, 255), (256, 0), (300, 44)])
def test_the_exit_code_is_the_low_byte(
    sandbox: Sandbox, install: Install, code: int, status: int
) -> None:
    install("exit_code")
    assert sandbox.commands.run(["exit_code", str(code)]).exit_code == status


@pytest.mark.parametrize(
    ("number", "status"),
    [(0, 0), (1, 129), (6, 134), (9, 137), (15, 143), (16, 0), (17, 0), (30, 159), (31, 0)],
    ids=["none", "HUP", "ABRT", "KILL", "TERM", "CHLD", "CONT", "SYS", "invalid"],
)
def test_a_raised_signal_has_its_default_action(
    sandbox: Sandbox, install: Install, number: int, status: int
) -> None:
    install("raise")
    result = sandbox.commands.run(["raise", str(number)])
    assert (result.exit_code, result.stdout) == (status, "" if status else "survived\n")


def test_an_ignored_signal_stays_ignored(sandbox: Sandbox, install: Install) -> None:
    install("raise")
    assert sandbox.commands.run("trap '' TERM; raise 15").stdout == "survived\n"


@pytest.mark.parametrize(
    ("rule", "status", "words"),
    [
        ("u", 132, "Illegal instruction"),
        ("m", 139, "Segmentation fault"),
        ("s", 139, "Segmentation fault"),
        ("c", 139, "Segmentation fault"),
        ("d", 136, "Floating point exception"),
    ],
    ids=["unreachable", "memory", "stack", "call", "division"],
)
def test_a_trap_is_reported_as_a_signal_by_the_shell(
    sandbox: Sandbox, install: Install, rule: str, status: int, words: str
) -> None:
    install("crash")
    result = sandbox.commands.run(f"crash {rule}; echo $?")
    assert result.stdout == f"before\n{status}\n"
    assert words in result.stderr


def test_the_predecessor_of_preview_1_works(sandbox: Sandbox, install: Install) -> None:
    install("unstable")
    result = sandbox.commands.run("unstable")
    assert (result.stdout, result.exit_code) == ("unstable ok\n", 0)


def test_the_c_library_finds_absolute_and_relative_paths(
    sandbox: Sandbox, install: Install
) -> None:
    install("libc")
    sandbox.files.write("/home/user/above", "above\n")
    sandbox.files.write("/top", "at the top\n")
    result = sandbox.commands.run(
        "echo here > here; libc here ./here ../above /home/user/above /etc/hostname ../../../top "
        "/dev/stdin /missing <<< standard"
    )
    assert result.stdout.splitlines() == [
        "here: here",
        "./here: here",
        "../above: above",
        "/home/user/above: above",
        "/etc/hostname: sandbox",
        "../../../top: at the top",
        "/dev/stdin: standard",
        "/missing: No such file or directory",
        "made: by the libc",
        "../made: by the libc",
        "/etc/hostname: sandbox",
        "3 entries, a terminal: 0 0, PWD /home/user/work",
    ]
