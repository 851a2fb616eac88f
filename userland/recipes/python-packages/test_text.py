"""Packages for templates, markup, configuration and terminals, in use."""

from __future__ import annotations

from userland.recipes.guest_with_pip import Guest


def test_jinja2(guest: Guest) -> None:
    guest.run("pip install -q jinja2")
    program = """
from jinja2 import DictLoader, Environment
from markupsafe import Markup, escape
pages = {"base": "<{% block b %}{% endblock %}>", "page": "{% extends 'base' %}{% block b %}"
         "{% for x in items if x %}{{ loop.index }}:{{ x|upper }} {% endfor %}{% endblock %}"}
environment = Environment(loader=DictLoader(pages), autoescape=True)
print(environment.get_template("page").render(items=["a", "", "<"]))
print(escape("<&>"), Markup("<b>%s</b>") % "<")
"""
    assert guest.python(program) == "<1:A 2:&lt; >\n&lt;&amp;&gt; <b>&lt;</b>\n"


def test_tables_and_progress(guest: Guest) -> None:
    guest.run("pip install -q tabulate tqdm rich")
    program = """
import io
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from tabulate import tabulate
from tqdm import tqdm
print(tabulate([["a", 1], ["b", 22]], headers=["n", "v"], tablefmt="github"))
out = io.StringIO()
print(sum(tqdm(range(5), file=out)), "5/5" in out.getvalue())
table = Table("k", "v", title="T")
table.add_row("x", "[bold]1[/]")
console = Console(file=io.StringIO(), width=40)
console.print(table, Markdown("# Title"))
text = console.file.getvalue()
print("┃ k ┃ v ┃" in text, "Title" in text)
"""
    assert guest.python(program).splitlines() == [
        "| n   |   v |",
        "|-----|-----|",
        "| a   |   1 |",
        "| b   |  22 |",
        "10 True",
        "True True",
    ]


def test_markup(guest: Guest) -> None:
    guest.run("pip install -q markdown markdown-it-py pygments")
    program = """
import markdown
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
print(markdown.markdown("a *b*\\n\\n|x|\\n|-|\\n|1|", extensions=["tables"]).count("<td>"))
print(MarkdownIt().render("**x**"), end="")
print('class="k"' in highlight("def f(): pass", PythonLexer(), HtmlFormatter()))
"""
    assert guest.python(program) == "1\n<p><strong>x</strong></p>\nTrue\n"


def test_configuration(guest: Guest) -> None:
    guest.run("pip install -q toml tomli-w tomlkit python-dotenv simplejson")
    program = """
import os, tomllib
import dotenv, simplejson, toml, tomli_w, tomlkit
print(toml.loads("a = [1, 2]"), tomllib.loads(tomli_w.dumps({"x": {"y": 1}})))
document = tomlkit.parse("a = 1 # one\\n")
document["b"] = 2
print(repr(tomlkit.dumps(document)))
open(".env", "w").write("KEY='a b'\\n")
dotenv.load_dotenv(".env")
print(os.environ["KEY"], simplejson.loads(simplejson.dumps({"a": 1.5}), use_decimal=True))
"""
    assert guest.python(program).splitlines() == [
        "{'a': [1, 2]} {'x': {'y': 1}}",
        "'a = 1 # one\\nb = 2\\n'",
        "a b {'a': Decimal('1.5')}",
    ]


def test_schemas_and_grammars(guest: Guest) -> None:
    guest.run("pip install -q jsonschema lark attrs")
    program = """
import attrs
from jsonschema import Draft202012Validator, ValidationError, validate
from lark import Lark
schema = {"required": ["a"], "properties": {"a": {"type": "integer", "minimum": 1}}}
validate({"a": 1}, schema)
print(sorted(error.message for error in Draft202012Validator(schema).iter_errors({"a": 0})))
print(Lark('start: WORD+\\n%import common.WORD\\n%ignore " "').parse("hello world").children)
@attrs.define
class Point:
    x: int = attrs.field(validator=attrs.validators.gt(0))
print(Point(1), attrs.asdict(Point(2)))
"""
    assert guest.python(program).splitlines() == [
        "['0 is less than the minimum of 1']",
        "[Token('WORD', 'hello'), Token('WORD', 'world')]",
        "Point(x=1) {'x': 2}",
    ]


def test_encodings_and_colours(guest: Guest) -> None:
    guest.run("pip install -q chardet charset-normalizer colorama termcolor")
    program = """
import chardet, colorama, termcolor
from charset_normalizer import from_bytes
text = "Grüße aus Köln, schöne Straßen und viele Bäume. " * 5
print(chardet.detect("héllo wörld ".encode("utf-8") * 5)["encoding"].lower())
print(str(from_bytes(text.encode("utf-8")).best()) == text)
print(repr(colorama.Fore.RED), repr(termcolor.colored("x", "green", force_color=True)))
"""
    assert guest.python(program).splitlines() == [
        "utf-8",
        "True",
        r"'\x1b[31m' '\x1b[32mx\x1b[0m'",
    ]
