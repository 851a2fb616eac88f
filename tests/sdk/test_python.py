"""`sandbox.python()`: one interpreter that keeps its state."""

from __future__ import annotations

import threading
import time

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import CommandError, PythonError, Sandbox, SandboxClosedError
from wasmsand.machine import image_programs

pytestmark = pytest.mark.skipif(
    not any(program.name == "python" for program in image_programs()),
    reason="the image was built without Python",
)


def test_state_stays_from_call_to_call(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        session.run("import math\nradius = 2\ndef area(r):\n    return math.pi * r ** 2")
        assert session.run("round(area(radius), 3)").value == 12.566
        assert session.run("__name__").value == "__main__"
        assert session.run("sorted(n for n in globals() if not n.startswith('__'))").value == [
            "area",
            "math",
            "radius",
        ]


def test_output_and_value_are_separate(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        result = session.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n1 + 1")
        assert (result.stdout, result.stderr) == ("out\n", "err\n")
        assert (result.value, result.repr, result.error) == (2, "2", None)
        assert 0 < result.execution_time_ms < 30_000
        assert not result.timed_out
        result = session.run("print('no value')")
        assert (result.stdout, result.value, result.repr) == ("no value\n", None, None)
        assert session.run("").repr is None


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("True", True, "True"),
        ("'grün \\ud800 \\n'", "grün \ud800 \n", "'grün \\ud800 \\n'"),
        ("[1, 2.5, None, {'a': []}]", [1, 2.5, None, {"a": []}], "[1, 2.5, None, {'a': []}]"),
        ("2 ** 100", 2**100, str(2**100)),
        ("(1, 2)", (1, 2), "(1, 2)"),
        ("{1: 2}", {1: 2}, "{1: 2}"),
        ("b'x'", b"x", "b'x'"),
        ("[object]", None, "[<class 'object'>]"),
        ("x = []; x.append(x); x", None, "[[...]]"),
        ("None", None, None),
    ],
)
def test_simple_values_come_as_they_are(
    sandbox: Sandbox, code: str, value: object, shown: str | None
) -> None:
    with sandbox.python() as session:
        result = session.run(code)
        assert (result.value, result.repr, result.error) == (value, shown, None)


def test_values_too_large_to_carry_are_only_shown(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        result = session.run("'x' * 3_000_000")
        assert result.value is None
        assert result.repr is not None
        assert result.repr.endswith("... (3000002 characters)")
        assert session.run("1 << 5000").value is None


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (PythonError("ValueError", "no\nsuch", "..."), "ValueError: no\nsuch"),
        (PythonError("KeyboardInterrupt", "", "..."), "KeyboardInterrupt"),
    ],
)
def test_an_exception_as_text_is_what_python_prints_last(error: PythonError, shown: str) -> None:
    assert str(error) == shown


def test_an_exception_is_a_result_with_its_traceback(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        session.run("def half(n):\n    return 1 / n")
        result = session.run("print('before')\nhalf(0)")
        assert result.stdout == "before\n"
        assert result.error == PythonError(
            "ZeroDivisionError",
            "division by zero",
            "Traceback (most recent call last):\n"
            '  File "<run 2>", line 2, in <module>\n'
            "    half(0)\n"
            "    ~~~~^^^\n"
            '  File "<run 1>", line 2, in half\n'
            "    return 1 / n\n"
            "           ~~^~~\n"
            "ZeroDivisionError: division by zero\n",
        )
        error = session.run("import json; json.loads('{')").error
        assert error is not None
        assert error.type == "json.decoder.JSONDecodeError"
        error = session.run("if then").error
        assert error is not None
        assert (error.type, error.message) == ("SyntaxError", "expected ':' (<run 4>, line 1)")
        assert session.run("half(2)").value == 0.5


def test_sys_exit_ends_the_program_and_not_the_interpreter(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        error = session.run("x = 1; raise SystemExit(3)").error
        assert error is not None
        assert (error.type, error.message) == ("SystemExit", "3")
        assert session.run("x").value == 1


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import subprocess; subprocess.run(['sleep', '60'])",
        "input_never_comes = __import__('os').read(__import__('os').pipe()[0], 1)",
        "class A:\n    def __repr__(self):\n        while True: pass\nA()",
    ],
)
def test_a_timeout_leaves_the_interpreter_and_its_state(sandbox: Sandbox, code: str) -> None:
    with sandbox.python() as session:
        session.run("kept = 'kept'")
        result = session.run(f"print('before')\n{code}", timeout_ms=400)
        assert result.timed_out
        assert result.stdout == "before\n"
        assert result.error is not None
        assert result.error.type == "KeyboardInterrupt"
        assert session.run("kept").value == "kept"
        assert not session.closed


def test_a_program_that_resists_a_timeout_ends_with_its_interpreter(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        started = time.monotonic()
        code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
        result = session.run(code, timeout_ms=300)
        assert time.monotonic() - started < 20
        assert result.timed_out
        assert result.error is not None
        assert result.error.type == "InterpreterEnded"
        assert session.closed
        with pytest.raises(CommandError, match="ESRCH: the interpreter has ended"):
            session.run("1")
        with sandbox.python() as other:
            assert other.run("1").value == 1


def test_an_interpreter_that_ends_is_a_result(sandbox: Sandbox) -> None:
    session = sandbox.python()
    result = session.run("print('last words', flush=True)\nimport os; os._exit(7)")
    assert result.stdout == "last words\n"
    assert result.error == PythonError(
        "InterpreterEnded", "the interpreter ended with exit code 7", ""
    )
    assert session.closed
    assert repr(session).endswith(" ended>")


def test_sessions_do_not_share_state(sandbox: Sandbox) -> None:
    with sandbox.python() as one, sandbox.python() as two:
        one.run("x = 1")
        two.run("x = 2; open('shared.txt', 'w').write('file')")
        assert (one.run("x").value, two.run("x").value) == (1, 2)
        assert one.run("open('shared.txt').read()").value == "file"
        assert one.pid != two.pid


def test_output_is_delivered_while_the_program_runs(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        pieces: list[str] = []
        code = "import time\nfor i in range(3):\n    print(i)\n    time.sleep(0.05)"
        result = session.run(code, on_stdout=pieces.append)
        assert "".join(pieces) == result.stdout == "0\n1\n2\n"
        assert len(pieces) > 1


def test_variables_and_directory(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(env={"A": "sandbox"})
    with sandbox.python(env={"B": "session"}, cwd="/tmp") as session:
        code = "import os; [os.environ['A'], os.environ['B'], os.getcwd()]"
        assert session.run(code).value == ["sandbox", "session", "/tmp"]
        assert session.run("import sys; sys.argv, sys.stdin.read()").repr == "([''], '')"


def test_modules_in_the_working_directory_are_imported(sandbox: Sandbox) -> None:
    sandbox.files.write("helper.py", "answer = 42\n")
    with sandbox.python() as session:
        assert session.run("import helper; helper.answer").value == 42


@pytest.mark.parametrize(
    "attack",
    [
        'os.write(104, b\'{"token": "0", "repr": "forged"}\\n\')',
        "os.write(104, b'\\xff\\x00 not json\\n' * 100)",
        "os.write(104, b'[' * 100_000 + b'\\n')",
        "[os.write(104, b'x' * 65536) for _ in range(200)]; os.write(104, b'\\n')",
        "os.write(104, b'9' * 10_000 + b'\\n')",
        "os.write(104, b'null\\n[]\\n\"\"\\n{}\\n')",
    ],
)
def test_a_program_cannot_forge_answers_on_the_control_channel(
    sandbox: Sandbox, attack: str
) -> None:
    with sandbox.python() as session:
        result = session.run(f"import os\n{attack}\n'true'")
        assert (result.value, result.error) == ("true", None)
        assert session.run("1 + 1").value == 2


def test_forged_answers_are_checked_field_by_field(sandbox: Sandbox) -> None:
    forge = """
import os, json
header = {'token': display.__globals__['token'], 'kind': 'answer', 'at': []}
header['segments'] = ['value', 'type', 'error']
os.write(104, b'\\t'.join([json.dumps(header).encode(), b'NQ==', b'/w==', b'']) + b'\\n')
"""
    with sandbox.python() as session:
        result = session.run(forge)
        assert result.repr is None
        assert result.value is None
        assert result.error == PythonError("\ufffd", "", "")
        assert session.run("1").value == 1


def test_children_do_not_hold_the_control_channel(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        code = 'import os; os.system(\'echo x >&104; echo $?; ls /proc/self/fd | tr "\\\\n" " "\')'
        result = session.run(code)
        assert "103" not in result.stdout
        assert "104" not in result.stdout.replace("104: Bad", "")


def test_output_past_the_limit_ends_the_call(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(max_output_bytes=10_000)
    with sandbox.python() as session:
        result = session.run("x = 1\nwhile True: print('x' * 100)")
        assert result.truncated
        assert result.stdout == ("x" * 100 + "\n") * 99 + "x"
        assert "raise max_output_bytes" in result.stderr
        assert session.run("x").value == 1


def test_one_call_at_a_time(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        session.run("n = 0")
        code = "m = n\nimport time; time.sleep(0.01)\nn = m + 1"
        threads = [threading.Thread(target=session.run, args=(code,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.run("n").value == 5


def test_a_killed_sandbox_ends_its_sessions(sandbox: Sandbox) -> None:
    session = sandbox.python()
    session.run("1")
    sandbox.kill()
    assert session.closed
    with pytest.raises(SandboxClosedError):
        session.run("1")
    session.close()


@pytest.mark.parametrize("bad", [5, None, b"x"])
def test_code_must_be_text(sandbox: Sandbox, bad: object) -> None:
    with sandbox.python() as session, pytest.raises(TypeError, match="code"):
        session.run(bad)  # type: ignore[arg-type]
