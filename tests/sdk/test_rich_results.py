"""What Python sessions display: values and objects in their MIME forms."""

from __future__ import annotations

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import DisplayItem, PythonResult, Sandbox
from wasmsand.machine import image_programs

pytestmark = pytest.mark.skipif(
    not any(program.name == "python" for program in image_programs()),
    reason="the image was built without Python",
)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def run(sandbox: Sandbox, code: str) -> PythonResult:
    with sandbox.python() as session:
        return session.run(code)


def test_a_plain_value_is_one_item_with_its_text(sandbox: Sandbox) -> None:
    result = run(sandbox, "[1, 2]")
    assert result.results == (DisplayItem({"text/plain": "[1, 2]"}, is_main=True),)
    assert result.main is result.results[0]
    assert result.text == "[1, 2]"
    nothing = run(sandbox, "x = 1")
    assert (nothing.results, nothing.main, nothing.text) == ((), None, None)


def test_a_value_comes_in_every_form_that_it_offers(sandbox: Sandbox) -> None:
    code = f"""
class Everything:
    def __repr__(self): return 'text'
    def _repr_html_(self): return '<b>html</b>'
    def _repr_markdown_(self): return '**markdown**'
    def _repr_latex_(self): return '$latex$'
    def _repr_svg_(self): return '<svg/>'
    def _repr_png_(self): return {PNG!r}, {{'width': 3}}
    def _repr_jpeg_(self): return b'\\xff\\xd8\\xff'
    def _repr_pdf_(self): return b'%PDF'
    def _repr_json_(self): return {{'a': [1, None]}}
    def _repr_javascript_(self): return 'alert(1)'
Everything()
"""
    item = run(sandbox, code).main
    assert item is not None
    assert (item.text, item.html, item.markdown) == ("text", "<b>html</b>", "**markdown**")
    assert (item.latex, item.svg, item.javascript) == ("$latex$", "<svg/>", "alert(1)")
    assert (item.png, item.jpeg, item.pdf) == (PNG, b"\xff\xd8\xff", b"%PDF")
    assert item.json == {"a": [1, None]}
    assert item.metadata == {"image/png": {"width": 3}}
    assert item.formats()[0] == "text/plain"
    assert item["image/png"] == PNG
    assert item._repr_mimebundle_() == (item.data, item.metadata)


def test_a_bundle_of_forms_and_a_display_method_of_its_own(sandbox: Sandbox) -> None:
    code = """
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {'text/plain': 'plain', 'text/html': '<i>', 'application/x.own+json': [1]}, {'k': 1}
class Own:
    def _ipython_display_(self):
        display('shown by itself')
display(Bundle())
Own()
"""
    result = run(sandbox, code)
    bundle, own = result.results[:2]
    assert bundle.data == {
        "text/plain": "plain",
        "text/html": "<i>",
        "application/x.own+json": [1],
    }
    assert bundle.metadata == {"k": 1}
    assert own.text == "'shown by itself'"


def test_display_is_a_builtin_and_items_keep_their_order(sandbox: Sandbox) -> None:
    result = run(sandbox, "display(1, 'two')\nprint('out')\ndisplay({'three': 3})\n4")
    assert [(item.text, item.is_main) for item in result.results] == [
        ("1", False),
        ("'two'", False),
        ("{'three': 3}", False),
        ("4", True),
    ]
    assert result.value == 4


def test_the_classes_of_ipython_display_work_without_ipython(sandbox: Sandbox) -> None:
    sandbox.files.write("picture.png", PNG)
    code = """
from IPython.display import (HTML, JSON, SVG, Image, Javascript, Latex, Markdown, Math, display,
                             clear_output)
import IPython, IPython.core.display
display(HTML('<p>'), Markdown('*m*'), Latex('$x$'), SVG('<svg/>'), JSON({'a': 1}), JSON('[1]'))
display(Image('picture.png', width=5), Image(data=b'\\xff\\xd8\\xffjpeg'), Math('x^2'))
clear_output()
[IPython.get_ipython(), IPython.core.display.HTML is HTML]
"""
    result = run(sandbox, code)
    assert result.error is None, result.error.traceback
    html, markdown, latex, svg, json, text, png, jpeg, math, main = result.results
    assert (html.html, html.text) == ("<p>", "<IPython.core.display.HTML object>")
    assert (markdown.markdown, latex.latex, svg.svg) == ("*m*", "$x$", "<svg/>")
    assert (json.json, text.json) == ({"a": 1}, [1])
    assert (png.png, png.metadata) == (PNG, {"image/png": {"width": 5}})
    assert jpeg.jpeg == b"\xff\xd8\xffjpeg"
    assert math.latex == "$\\displaystyle x^2$"
    assert main.is_main
    assert result.value == [None, True]


def test_ipython_exists_only_in_sessions(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(["python3", "-c", "import IPython"])
    assert "ModuleNotFoundError: No module named 'IPython'" in result.stderr


def test_an_installed_ipython_is_used_with_the_display_of_the_session(sandbox: Sandbox) -> None:
    sandbox.files.write("IPython/__init__.py", "here = 'installed'\n")
    sandbox.files.write("IPython/display.py", "def display(*x): print('lost')\nclass HTML: pass\n")
    code = "import IPython\nfrom IPython.display import display, HTML\ndisplay(5)\nIPython.here"
    result = run(sandbox, code)
    assert (result.value, result.stdout) == ("installed", "")
    assert result.results[0].text == "5"


def test_an_updated_item_takes_the_place_of_the_earlier_one(sandbox: Sandbox) -> None:
    code = "h = display('first', display_id=True)\ndisplay('between')\nh.update('second')"
    seen: list[str | None] = []
    with sandbox.python() as session:
        result = session.run(code, on_result=lambda item: seen.append(item.text))
    assert [item.text for item in result.results] == ["'second'", "'between'"]
    assert seen == ["'first'", "'between'", "'second'"]


def test_a_form_that_fails_is_reported_and_the_others_come(sandbox: Sandbox) -> None:
    code = """
class Half:
    def _repr_html_(self): raise ValueError('no html')
    def _repr_markdown_(self): return 'm'
    def _repr_json_(self): return None
Half()
"""
    result = run(sandbox, code)
    assert result.main is not None
    assert set(result.main.formats()) == {"text/plain", "text/markdown"}
    assert "ValueError: no html" in result.stderr
    assert result.error is None


def test_classes_and_objects_with_every_attribute_offer_only_text(sandbox: Sandbox) -> None:
    code = """
from unittest.mock import MagicMock
class Html:
    def _repr_html_(self): return '<b>'
display(Html, MagicMock())
"""
    assert [item.formats() for item in run(sandbox, code).results] == [["text/plain"]] * 2


TABLE = """
class RangeIndex:
    pass
class Index:
    pass
class Table:
    columns = ['x', 'y']
    def __init__(self, rows, index=None):
        self.rows, self.index = rows, index or RangeIndex()
    def __len__(self): return len(self.rows)
    def _repr_html_(self): return f'<table>{len(self.rows)}</table>'
    def head(self, n): return Table(self.rows[:n], self.index)
    def reset_index(self): return Table([{'index': i, **row} for i, row in enumerate(self.rows)])
    def to_dict(self, orient):
        assert orient == 'records'
        return self.rows
class Column:
    def to_frame(self): return Table([{'x': 1.5}])
    def to_dict(self): return {}
"""


def test_tables_come_as_html_and_as_rows(sandbox: Sandbox) -> None:
    code = f"""{TABLE}
import datetime, decimal
display(Table([{{'x': 1, 'y': float('nan')}}, {{'x': datetime.date(2026, 1, 2), 'y': None}}]))
display(Table([{{'x': 1}}], Index()))
display(Column())
twice, wide = Table([{{'x': 1}}]), Table([{{'x': 1}}] * 100)
twice.columns, wide.columns = ['x', 'x'], range(5000)
display(twice, wide)
Table([{{'x': n, 'y': decimal.Decimal('1.5')}} for n in range(5000)])
"""
    result = run(sandbox, code)
    assert result.error is None, result.error.traceback
    first, indexed, column, twice, wide, long = result.results
    assert (twice.json, len(wide.json)) == (None, 2)
    assert first.json == [{"x": 1, "y": None}, {"x": "2026-01-02", "y": None}]
    assert first.html == "<table>2</table>"
    assert indexed.json == [{"index": 0, "x": 1}]
    assert (column.json, column.html) == ([{"x": 1.5}], "<table>1</table>")
    assert len(long.json) == 500
    assert long.json[3] == {"x": 3, "y": "1.5"}
    assert long.metadata == {"application/json": {"rows": 5000}}


def test_results_are_delivered_while_the_program_runs(sandbox: Sandbox) -> None:
    order: list[str] = []
    code = "print('one'); display('two'); print('three', flush=True)\n'four'"
    with sandbox.python() as session:
        session.run(
            code,
            on_stdout=order.append,
            on_result=lambda item: order.append(item.text or ""),
        )
    assert "".join(order) == "one\n'two'three\n'four'"


def test_an_exception_of_a_callback_ends_the_call_and_not_the_session(sandbox: Sandbox) -> None:
    def fail(item: DisplayItem) -> None:
        raise KeyError(item.text)

    with sandbox.python() as session:
        with pytest.raises(KeyError):
            session.run("x = 1\ndisplay(5)\nwhile True: pass", on_result=fail)
        assert session.run("x").value == 1
        with pytest.raises(TypeError, match="on_result"):
            session.run("1", on_result=5)  # type: ignore[arg-type]


def test_last_values_are_kept_as_in_ipython(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        session.run("6 * 7")
        assert session.run("_ + 1").value == 43
        assert session.run("[_, __, Out[1], In[2]]").value == [43, 42, 42, "_ + 1"]
        session.run("_ = 'own'")
        session.run("5")
        assert session.run("_").value == "own"
        assert session.run("sorted(n for n in globals() if n[:2] != '__')").value == ["_"]


def test_a_semicolon_at_the_end_hides_the_value(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        hidden = session.run("'ä'; 5 ;  # comment")
        assert (hidden.value, hidden.repr, hidden.results) == (None, None, ())
        assert session.run("5  # not hidden;").value == 5
        assert session.run("';'").value == ";"


def test_a_display_hook_of_the_program_gets_the_value(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        session.run("import sys; hook = sys.displayhook")
        session.run("sys.displayhook = lambda value: print('hook', value)")
        assert session.run("5").stdout == "hook 5\n"
        result = session.run("sys.displayhook = hook; hook(7); hook(None)")
        assert [item.text for item in result.results] == ["7"]


def test_threads_can_display(sandbox: Sandbox) -> None:
    code = """
import threading
threads = [threading.Thread(target=display, args=('x' * 100_000 + str(n),)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    texts = [item.text or "" for item in run(sandbox, code).results]
    assert sorted(text[-2] for text in texts) == list("01234567")
    assert {len(text) for text in texts} == {100_003}


FORGE = """
import os, json, base64
def forge(header, *segments):
    line = json.dumps({'token': display.__globals__['token'], **header}).encode()
    for segment in segments:
        line += b'\\t' + base64.b64encode(segment)
    line += b'\\n'
    while line:
        line = line[os.write(104, line):]
"""


@pytest.mark.parametrize(
    "attack",
    [
        "forge({'kind': 'display', 'segments': ['text/plain']}, b'x', b'y')",
        "forge({'kind': 'display', 'segments': ['text/plain', 'text/html']}, b'x')",
        "forge({'kind': 'display', 'segments': 'text/plain'}, b'x')",
        "forge({'kind': 5, 'segments': []}, b'')",
        "forge({'kind': 'display', 'segments': [[]]}, b'')",
        "forge({'kind': 'display', 'segments': ['a'], 'x': 'y' * 20_000}, b'')",
        "forge({'kind': 'unknown', 'segments': ['a']}, b'')",
        "forge({'kind': 'display', 'segments': ['a'] * 40}, *[b''] * 40)",
        "forge({'kind': 'display', 'segments': ['a']}, *[b''] * 60_000)",
        "os.write(104, b'half a line without an end')",
        "forge({'kind': 'input', 'number': 1, 'segments': ['prompt']}, b'?')",
        "forge({'kind': 'input', 'number': [], 'segments': ['prompt']}, b'?')",
        "forge({'kind': 'input', 'number': 10 ** 30, 'segments': ['prompt']}, b'?')",
    ],
)
def test_invalid_messages_are_ignored(sandbox: Sandbox, attack: str) -> None:
    with sandbox.python() as session:
        answer = None if "'number': 1," in attack else lambda _: "answer"
        result = session.run(f"{FORGE}\n{attack}\n'true'", on_input=answer)
        assert result.error is None, result.error.traceback
        assert (result.value, len(result.results)) == ("true", 1)
        assert session.run("1 + 1").value == 2


def test_forged_items_are_checked_form_by_form(sandbox: Sandbox) -> None:
    attack = """
names = ['text/plain', 'no mime', 'image/png', 'application/json', 'TEXT/HTML', 'text/a+json']
forge({'kind': 'display', 'segments': names, 'metadata': [1], 'id': 7, 'main': 'yes'},
      b'\\xff', b'x', b'png', b'[' * 100_000, b'x', b'{"deep": 1' )
"""
    with sandbox.python() as session:
        result = session.run(FORGE + attack)
        assert result.error is None, result.error.traceback
        assert result.results == (DisplayItem({"text/plain": "\ufffd", "image/png": b"png"}),)


def test_a_forged_answer_ends_only_its_own_call(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        forged = session.run(
            f"{FORGE}\nforge({{'kind': 'answer', 'segments': ['repr', 'value'], 'at': 10 ** 30}},"
            " b'forged', b'{\"x\": 1}')\nfor _ in range(3): display('late')\n'real'"
        )
        assert (forged.repr, forged.value) == ("forged", {"x": 1})
        later = session.run("'next'")
        assert (later.value, len(later.results)) == ("next", 1)


def test_endless_displays_end_the_call_at_the_limit(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(max_output_bytes=100_000)
    with sandbox.python() as session:
        result = session.run("kept = 1\nwhile True: display(1)")
        assert result.truncated
        assert 50 < len(result.results) < 100
        assert "raise max_output_bytes" in result.stderr
        large = session.run("display({'text/html': 'x' * 60_000}, raw=True)\n" * 3)
        assert large.truncated
        assert len(large.results) == 1
        assert session.run("kept").value == 1


def test_json_that_would_take_much_memory_counts_more(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(max_output_bytes=1_000_000)
    with sandbox.python() as session:
        result = session.run("display({'application/json': [[]] * 30_000}, raw=True)")
        assert result.truncated
        assert result.results == ()


def test_forms_that_are_too_large_are_left_out_and_named(sandbox: Sandbox) -> None:
    result = run(sandbox, "display({'text/html': 'x' * 6_000_000, 'text/plain': 'x'}, raw=True)")
    assert result.results == (DisplayItem({"text/plain": "x"}),)
    assert result.stderr == (
        "display: the form text/html has 6000000 bytes and was left out; the most is 5242880\n"
    )


def test_an_interrupt_does_not_break_a_message_in_two(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        session.run(
            "class Big:\n    def _repr_html_(self): return 'x' * 400_000\nbig = Big()\nimport time"
        )
        for timeout_ms in (150, 170, 190):
            result = session.run(
                "while True: display(big); time.sleep(0.01)", timeout_ms=timeout_ms
            )
            assert result.timed_out
            assert result.error is not None
            assert result.error.type == "KeyboardInterrupt"
            assert session.run("6 * 7").value == 42


def test_a_program_that_closes_the_descriptors_of_its_session_ends_it(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        result = session.run("import os; os.closerange(3, 256)")
        assert result.error is not None
        assert result.error.message == "the interpreter ended with exit code 1"
        assert (result.stderr, session.closed) == ("", True)


needs_numpy = pytest.mark.skipif(
    not any(program.name == "python-full" for program in image_programs()),
    reason="the stage of packages is not built: run `make packages`",
)


@needs_numpy
@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("np.float64(2.5)", 2.5),
        ("np.array([1, 2, 3]).sum()", 6),
        ("np.array([1.0, 2.0]).mean() > 1", True),
        ("np.complex128(1j)", 1j),
    ],
)
def test_a_number_of_numpy_is_a_number(code: str, value: object) -> None:
    with Sandbox(packages=["numpy"]) as sandbox, sandbox.python() as session:
        result = session.run(f"import numpy as np\n{code}")
    assert result.has_value
    assert result.value == value
    assert type(result.value) is type(value)
    assert result.repr is not None
    assert result.repr.startswith("np.")


@needs_numpy
def test_an_array_is_only_described() -> None:
    with Sandbox(packages=["numpy"]) as sandbox, sandbox.python() as session:
        for code in ("np.array([1, 2])", "np.array(5)", "np.datetime64('2026-01-01')"):
            result = session.run(f"import numpy as np\n{code}")
            assert (result.has_value, result.value) == (False, None)
