"""What cells of Python sessions may contain beside Python: `await`, `!commands`, magics, `input()`;
and figures of matplotlib."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import CommandError, PackageError, PythonSession, Sandbox
from wasmsand.machine import image_programs

pytestmark = pytest.mark.skipif(
    not any(program.name == "python" for program in image_programs()),
    reason="the image was built without Python",
)


@pytest.fixture
def session(sandbox: Sandbox) -> Iterator[PythonSession]:
    with sandbox.python() as session:
        yield session


# await


def test_await_works_outside_of_functions(session: PythonSession) -> None:
    session.run(
        "import asyncio\nasync def double(n):\n    await asyncio.sleep(0)\n    return 2 * n"
    )
    assert session.run("x = await double(4)\nawait double(x)").value == 16
    code = "async with asyncio.timeout(5):\n    y = [await double(n) for n in (1, 2)]\ny"
    assert session.run(code).value == [2, 4]
    assert session.run("asyncio.run(double(3))").value == 6
    assert session.run("await double(5)").value == 10


def test_the_event_loop_lives_as_long_as_the_session(session: PythonSession) -> None:
    session.run("import asyncio\nseen = []")
    session.run(
        "async def work():\n    await asyncio.sleep(0.01)\n    seen.append('done')\n"
        "task = asyncio.create_task(work())\nawait asyncio.sleep(0)"
    )
    assert session.run("await task\nseen").value == ["done"]
    error = session.run("asyncio.run(work()); await work(); asyncio.run(work())").error
    assert error is not None
    assert "cannot be called from a running event loop" in error.message


def test_an_exception_of_a_coroutine_has_only_the_cell_in_its_traceback(
    session: PythonSession,
) -> None:
    session.run("async def fail():\n    raise ValueError('deep')")
    error = session.run("x = 1\nawait fail()").error
    assert error is not None
    assert error.traceback == (
        "Traceback (most recent call last):\n"
        '  File "<run 2>", line 2, in <module>\n'
        "    await fail()\n"
        '  File "<run 1>", line 2, in fail\n'
        "    raise ValueError('deep')\n"
        "ValueError: deep\n"
    )


def test_a_timeout_ends_a_cell_that_awaits(session: PythonSession) -> None:
    for code in (
        "await asyncio.sleep(60)",
        "async def spin():\n    while True: pass\nawait spin()",
    ):
        result = session.run(f"import asyncio\n{code}", timeout_ms=300)
        assert result.timed_out
        assert result.error is not None
        assert result.error.type == "KeyboardInterrupt"
        assert session.run("await asyncio.sleep(0, 'usable')").value == "usable"


@pytest.mark.xfail(reason="L065: tasks continue only while a cell awaits", strict=True)
def test_tasks_continue_between_cells(session: PythonSession) -> None:
    session.run("import asyncio\ndone = []\nasync def work():\n    done.append(1)")
    session.run("task = asyncio.create_task(work())\nawait asyncio.sleep(0)\ndone.clear()")
    session.run("async def late():\n    await asyncio.sleep(0.05)\n    done.append(2)")
    session.run("task = asyncio.create_task(late())\nawait asyncio.sleep(0)")
    time.sleep(0.3)
    assert session.run("done").value == [2]


@pytest.mark.xfail(reason="L066: sessions have no IPython shell object", strict=True)
def test_the_shell_object_of_ipython_exists(session: PythonSession) -> None:
    code = "from IPython import get_ipython\nget_ipython() is not None"
    assert session.run(code).value is True


# Commands and magics


def test_commands_print_as_they_run_and_use_variables(session: PythonSession) -> None:
    pieces: list[str] = []
    result = session.run(
        "name = 'x y'\nprint('before')\n!echo {name} $name $HOME '{print $1}' {len(name) + 1}\n"
        "!echo to stderr >&2\n!sleep 0.3; echo late\nprint('after')",
        on_stdout=pieces.append,
    )
    assert result.error is None
    assert result.stdout == "before\nx y x y /home/user {print $1} 4\nlate\nafter\n"
    assert result.stderr == "to stderr\n"
    assert len(pieces) > 1


def test_the_output_of_a_command_can_be_assigned(session: PythonSession) -> None:
    result = session.run("lines = !printf 'a\\nb c\\n'; exit 3\n[lines, _exit_code]")
    assert result.value == [["a", "b c"], 3]
    result = session.run("x = {}\nx['key'] = !echo it\\'s\nx['key'], y = !echo 1; echo 2\n[x, y]")
    assert result.value == [{"key": "1"}, "2"]


VALID = [
    ("s = '''\n!ls\n%cd /\n%%bash\n'''\ns", "\n!ls\n%cd /\n%%bash\n"),
    ("a, b = 7, 4\nc = (a\n%b)\nc", 3),
    ("d = 7 \\\n%4\nd", 3),
    ("'%d!' % 5", "5!"),
    ("f'{5!r:>3} {6 % 4}'", "  5 2"),
    ("[1 # !ls\n, 2]", [1, 2]),
    ("1 != 2", True),
]


@pytest.mark.parametrize(("code", "value"), VALID)
def test_valid_python_is_never_changed(session: PythonSession, code: str, value: object) -> None:
    assert session.run(code).value == value
    # The same in a cell that is translated.
    mixed = session.run(f"!true\nif True:\n    !true\n{code}")
    assert mixed.value == value, mixed.error


def test_special_lines_work_in_blocks_and_over_several_lines(session: PythonSession) -> None:
    code = (
        "for n in range(2):\n    if n:\n        # comment\n\n        !echo n is {n} \\\n"
        "            and more\n        here = %pwd\nhere"
    )
    result = session.run(code)
    assert (result.stdout, result.value) == ("n is 1 and more\n", "/home/user")


def test_errors_name_the_line_as_it_was_written(session: PythonSession) -> None:
    error = session.run("def half(n):\n    return 1 / n\n!true\n%time half(0)").error
    assert error is not None
    assert error.type == "ZeroDivisionError"
    assert '  File "<run 1>", line 4, in <module>\n    %time half(0)\n' in error.traceback
    error = session.run("!true\nif then\n!true").error
    assert error is not None
    assert (error.type, error.message) == ("SyntaxError", "expected ':' (<run 2>, line 2)")
    error = session.run("x = 'never ends\n!true").error
    assert error is not None
    assert error.type == "SyntaxError"


def test_unknown_magics_say_which_there_are(session: PythonSession) -> None:
    for code, name in (("%load_ext x", "%load_ext"), ("%%perl\nprint 1", "%%perl")):
        error = session.run(code).error
        assert error is not None
        assert error.type == "UsageError"
        assert error.message.startswith(f"{name} does not exist in this session; there are: %")


def test_cd_pwd_and_env(session: PythonSession) -> None:
    result = session.run("%cd /tmp\n%cd -q /usr\n%cd -\nplace = '/var'\n%cd $place\n%pwd")
    assert (result.stdout, result.value) == ("/tmp\n/tmp\n/var\n", "/var")
    assert session.run("!pwd").stdout == "/var\n"
    assert session.run("%env COLOUR=red\n!echo $COLOUR\n%env COLOUR").value == "red"
    assert session.run("%env").repr is not None
    error = session.run("%env NOT_THERE").error
    assert error is not None
    assert error.message == "%env: there is no variable NOT_THERE"


def test_time_and_timeit(session: PythonSession) -> None:
    result = session.run("n = 4\n%time n * 10")
    assert result.value == 40
    assert result.stdout.startswith("CPU times: user ")
    assert "Wall time: " in result.stdout
    printed = session.run("%timeit -n 3 -r2 n + 1").stdout
    assert printed.endswith(" per loop (mean ± std. dev. of 2 runs, 3 loops each)\n")
    assert session.run("%%time\nm = n + 1\nm").value == 5
    assert "7 runs" in session.run("%%timeit k = 1\nk + n").stdout


def test_cells_can_be_scripts_files_and_documents(session: PythonSession) -> None:
    result = session.run("%%bash\nfor n in 1 2; do\n  echo $n\ndone")
    assert (result.stdout, result.error) == ("1\n2\n", None)
    error = session.run("%%bash\nexit 3").error
    assert error is not None
    assert "non-zero exit status 3" in error.message
    assert session.run("%%writefile tool.py\nanswer = 42\n").stdout == "Writing tool.py\n"
    assert session.run("%%writefile -a tool.py\nmore = 1").stdout == "Appending to tool.py\n"
    assert session.run("%run tool.py\n[answer, more]").value == [42, 1]
    assert session.run("%%html\n<b>x</b>").results[0].html == "<b>x</b>"
    assert session.run("%matplotlib inline").error is None
    pip = session.run("%pip --version")
    assert "pip" in pip.stdout + pip.stderr
    assert "Docstring: Return the number of items" in session.run("len?").stdout


# input()


def test_input_is_answered_by_the_callback(session: PythonSession) -> None:
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return f"answer {len(asked)}\n"

    code = "print('x', end='')\na = input('first? ')\nb = input()\n[a, b]"
    result = session.run(code, on_input=answer)
    assert result.value == ["answer 1", "answer 2"]
    assert asked == ["first? ", ""]
    assert session.run("[a, b]").value == ["answer 1", "answer 2"]


def test_input_without_an_answer_names_the_option(session: PythonSession) -> None:
    error = session.run("input('?')").error
    assert error is not None
    assert error.type == "EOFError"
    assert error.message.startswith("input() has no answer here; answer it with on_input=")
    error = session.run("input('?')", on_input=lambda _: None).error
    assert error is not None
    assert error.type == "EOFError"
    with pytest.raises(TypeError, match="on_input"):
        session.run("1", on_input="text")  # type: ignore[arg-type]


def test_the_time_of_an_answer_does_not_count(session: PythonSession) -> None:
    def slowly(_: str) -> str:
        time.sleep(1.5)
        return "late"

    result = session.run("input()", on_input=slowly, timeout_ms=1000)
    assert (result.value, result.timed_out) == ("late", False)


def test_a_failing_or_wrong_answer_ends_the_call_and_not_the_session(
    session: PythonSession,
) -> None:
    def fail(_: str) -> str:
        raise KeyError("no answer")

    with pytest.raises(KeyError):
        session.run("kept = 1\ninput()", on_input=fail)
    with pytest.raises(TypeError, match="the result of on_input must be a str"):
        session.run("input()", on_input=lambda _: 5)  # type: ignore[arg-type,return-value]
    with pytest.raises(ValueError, match="too long"):
        session.run("input()", on_input=lambda _: "x" * 100_000)
    assert session.run("kept").value == 1
    assert session.run("input()", on_input=lambda _: "x" * 30_000).value == "x" * 30_000


def test_a_thread_cannot_ask(session: PythonSession) -> None:
    code = """
import threading
def ask():
    try:
        input()
    except RuntimeError as error:
        print(error)
thread = threading.Thread(target=ask)
thread.start(); thread.join()
"""
    result = session.run(code, on_input=lambda _: "x")
    assert result.stdout == "input() works only in the main thread of a session\n"


def test_standard_input_answers_if_there_is_no_callback(sandbox: Sandbox) -> None:
    with sandbox.python(stdin="one\ntwo\nthree\n") as session:
        result = session.run("[input('? '), input()]")
        assert (result.value, result.stdout) == (["one", "two"], "? ")
        assert session.run("import sys; sys.stdin.read()").value == "three\n"
        assert session.run("input()", on_input=lambda _: "callback").value == "callback"


# The end


def test_finish_ends_the_interpreter_as_a_program_ends(sandbox: Sandbox) -> None:
    session = sandbox.python()
    session.run(
        "import atexit, threading, time\nfile = open('out.txt', 'w'); file.write('all')\n"
        "atexit.register(print, 'at exit')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()"
    )
    ended = session.finish()
    assert (ended.stdout, ended.exit_code) == ("thread\nat exit\n", 0)
    assert sandbox.files.read_text("out.txt") == "all"
    assert session.closed
    with pytest.raises(CommandError, match="ESRCH"):
        session.finish()


def test_finish_does_not_wait_for_ever(sandbox: Sandbox) -> None:
    session = sandbox.python()
    session.run("import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()")
    ended = session.finish(timeout_ms=300)
    assert ended.timed_out
    assert session.closed


# Warnings and logs


def test_warnings_and_logs_go_to_standard_error(session: PythonSession) -> None:
    code = "import warnings, logging\nwarnings.warn('careful')\nlogging.error('wrong')"
    for number in (1, 2):
        result = session.run(code)
        assert (result.stdout, result.error) == ("", None)
        assert f"<run {number}>:2: UserWarning: careful\n" in result.stderr
        assert "ERROR:root:wrong" in result.stderr


# Figures

PYPLOT = """
_open = {}
class Canvas: pass
class Figure:
    dpi = 100
    def __init__(self, number):
        self.number, self.canvas, self.saved = number, Canvas(), 0
    def savefig(self, stream, format, bbox_inches, dpi):
        assert (format, bbox_inches, dpi) == ('png', 'tight', 100)
        self.saved += 1
        stream.write(b'\\x89PNG figure %d, time %d' % (self.number, self.saved))
    def show(self): raise AttributeError('no window')
Figure.__module__ = 'matplotlib.figure'
def figure(number=None):
    number = number or max(_open, default=0) + 1
    return _open.setdefault(number, Figure(number))
def plot():
    figure(max(_open, default=1))
    return ['line']
def get_fignums(): return sorted(_open)
def close(figure): _open.pop(figure.number, None)
def show(): print('the original show')
"""


@pytest.fixture
def plotting(make_sandbox: MakeSandbox) -> Iterator[PythonSession]:
    """A session with a stand-in that has the functions of pyplot that a session uses."""
    sandbox = make_sandbox()
    sandbox.files.write("matplotlib/__init__.py", "import os; backend = os.environ['MPLBACKEND']")
    sandbox.files.write("matplotlib/pyplot.py", PYPLOT)
    with sandbox.python() as session:
        session.run("import matplotlib; matplotlib.backend")
        yield session


def test_figures_that_are_left_open_come_as_png_once(plotting: PythonSession) -> None:
    result = plotting.run("import matplotlib.pyplot as plt\nplt.plot()")
    assert result.error is None, result.error.traceback
    assert [(item.is_main, item.png) for item in result.results] == [
        (True, None),
        (False, b"\x89PNG figure 1, time 1"),
    ]
    assert plotting.run("[plt.get_fignums(), matplotlib.backend]").value == [[], "agg"]


def test_show_displays_figures_at_once_and_closes_them(plotting: PythonSession) -> None:
    code = (
        "from matplotlib import pyplot as plt\n"
        "a, b = plt.figure(), plt.figure()\nplt.show()\nprint('between')\nplt.plot()\nplt.show()"
    )
    order: list[object] = []
    result = plotting.run(
        code, on_stdout=order.append, on_result=lambda item: order.append(item.png)
    )
    assert result.error is None, result.error.traceback
    assert order == [
        b"\x89PNG figure 1, time 1",
        b"\x89PNG figure 2, time 1",
        "between\n",
        b"\x89PNG figure 1, time 1",
    ]


def test_a_figure_that_is_displayed_does_not_come_again(plotting: PythonSession) -> None:
    result = plotting.run("import matplotlib.pyplot as plt\nfig = plt.figure()\nfig")
    assert [(item.is_main, item.png) for item in result.results] == [
        (True, b"\x89PNG figure 1, time 1")
    ]
    shown = plotting.run("fig = plt.figure()\ndisplay(fig)\nfig.show()")
    assert [item.png for item in shown.results] == [
        b"\x89PNG figure 1, time 1",
        b"\x89PNG figure 1, time 2",
    ]


def test_figures_of_a_cell_that_fails_come_too(plotting: PythonSession) -> None:
    result = plotting.run("import matplotlib.pyplot as plt\nplt.plot()\n1 / 0")
    assert result.error is not None
    assert result.error.type == "ZeroDivisionError"
    assert [item.png for item in result.results] == [b"\x89PNG figure 1, time 1"]
    broken = plotting.run("plt.Figure.savefig = lambda *a, **k: 1 / 0\nplt.plot();")
    assert broken.error is None
    assert "ZeroDivisionError" in broken.stderr


def with_packages(make_sandbox: MakeSandbox, *names: str) -> Sandbox:
    """A sandbox with packages of native code."""
    try:
        return make_sandbox(packages=list(names), timeout_ms=120_000)
    except PackageError as missing:
        pytest.skip(f"build the stage `packages`: {missing}")


def test_a_real_figure_is_a_png(make_sandbox: MakeSandbox) -> None:
    with with_packages(make_sandbox, "matplotlib").python() as session:
        result = session.run("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()")
        assert result.error is None, result.error.traceback
        assert [(item.png or b"")[:8] for item in result.results] == [b"\x89PNG\r\n\x1a\n"]
        left_open = session.run("figure, axes = plt.subplots()\naxes.bar([1, 2], [3, 4]);")
        assert [item.formats() for item in left_open.results] == [["text/plain", "image/png"]]
        assert session.run("[plt.get_fignums(), plt.get_backend().lower()]").value == [[], "agg"]
        assert (result.stderr, left_open.stderr) == ("", "")


def test_real_tables_come_as_html_and_as_rows(make_sandbox: MakeSandbox) -> None:
    with with_packages(make_sandbox, "pandas").python() as session:
        session.run("import pandas as pd")
        days = "pd.to_datetime(['2026-01-02'] * 2)"
        code = f"pd.DataFrame({{'a': [1, 2], 'b': [0.5, None], 'c': {days}}})"
        item = session.run(code).main
        assert item is not None
        assert item.html is not None
        assert "<table" in item.html
        assert item.json == [
            {"a": 1, "b": 0.5, "c": "2026-01-02T00:00:00"},
            {"a": 2, "b": None, "c": "2026-01-02T00:00:00"},
        ]
        grouped = session.run("pd.Series([1, 2, 3], list('xyx'), name='n').groupby(level=0).sum()")
        assert grouped.main is not None
        assert grouped.main.json == [{"index": "x", "n": 4}, {"index": "y", "n": 2}]
        long = session.run("pd.DataFrame({'a': range(5000)})").main
        assert long is not None
        assert len(long.json) == 500
        assert long.metadata["application/json"] == {"rows": 5000}
