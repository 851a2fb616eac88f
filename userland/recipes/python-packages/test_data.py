"""Packages for data, mathematics and dates, in use."""

from __future__ import annotations

from userland.recipes.guest_with_pip import Guest


def test_networkx(guest: Guest) -> None:
    guest.run("pip install -q networkx")
    program = """
import networkx as nx
graph = nx.Graph()
graph.add_weighted_edges_from([("a", "b", 1), ("b", "c", 2), ("a", "c", 5), ("d", "e", 1)])
print(nx.shortest_path(graph, "a", "c", weight="weight"), nx.number_connected_components(graph))
print(sorted(nx.minimum_spanning_edges(nx.cycle_graph(4), data=False)))
print(list(nx.topological_sort(nx.DiGraph([(1, 2), (2, 3)]))), nx.density(nx.complete_graph(5)))
"""
    assert guest.python(program).splitlines() == [
        "['a', 'b', 'c'] 2",
        "[(0, 1), (0, 3), (1, 2)]",
        "[1, 2, 3] 1.0",
    ]


def test_sympy_and_mpmath(guest: Guest) -> None:
    guest.run("pip install -q sympy")
    program = """
from mpmath import mp
from sympy import Eq, Matrix, diff, factor, integrate, latex, limit, oo, sin, solve, symbols
x, y = symbols("x y")
print(solve(x**2 - 5 * x + 6), factor(x**3 - 1), diff(sin(x) * x, x))
print(integrate(1 / (1 + x**2), (x, -oo, oo)), limit(sin(x) / x, x, 0), latex(x**2 / y))
print(solve([Eq(x + y, 3), Eq(x - y, 1)], [x, y]), Matrix([[2, 1], [1, 2]]).eigenvals())
mp.dps = 30
print(mp.pi)
"""
    assert guest.python(program).splitlines() == [
        "[2, 3] (x - 1)*(x**2 + x + 1) x*cos(x) + sin(x)",
        r"pi 1 \frac{x^{2}}{y}",
        "{x: 2, y: 1} {3: 1, 1: 1}",
        "3.14159265358979323846264338328",
    ]


def test_dates_and_zones(guest: Guest) -> None:
    guest.run("pip install -q python-dateutil pytz humanize")
    program = """
from datetime import datetime, timedelta
import humanize, pytz
from dateutil.parser import parse
from dateutil.relativedelta import relativedelta
from dateutil.rrule import MONTHLY, rrule
from dateutil.tz import gettz
print(parse("1 May 2024 10:30"), parse("2024-01-31") + relativedelta(months=1))
print([d.day for d in rrule(MONTHLY, count=3, dtstart=datetime(2024, 1, 31), bymonthday=-1)])
print(datetime(2024, 7, 1, tzinfo=gettz("Europe/Berlin")).utcoffset())
print(pytz.timezone("US/Eastern").localize(datetime(2024, 1, 1)))
print(humanize.naturalsize(12345678), humanize.naturaldelta(timedelta(hours=5)))
"""
    assert guest.python(program).splitlines() == [
        "2024-05-01 10:30:00 2024-02-29 00:00:00",
        "[31, 29, 31]",
        "2:00:00",
        "2024-01-01 00:00:00-05:00",
        "12.3 MB 5 hours",
    ]


def test_joblib_cloudpickle_and_dill(guest: Guest) -> None:
    guest.run("pip install -q joblib dill")
    program = """
import pickle
import cloudpickle, dill, joblib
memory = joblib.Memory("cache", verbose=0)
calls = []
@memory.cache
def square(x):
    calls.append(x)
    return x * x
print(square(3), square(3), len(calls))
print(joblib.Parallel(n_jobs=2, prefer="threads")(joblib.delayed(pow)(i, 2) for i in range(4)))
print(pickle.loads(cloudpickle.dumps(lambda x: x + 1))(1), dill.loads(dill.dumps(lambda: 5))())
"""
    assert guest.python(program).splitlines() == ["9 9 1", "[0, 1, 4, 9]", "2 5"]


def test_containers_and_parsers(guest: Guest) -> None:
    guest.run("pip install -q toolz sortedcontainers pyparsing more-itertools cachetools cycler")
    program = """
import cachetools, more_itertools, pyparsing as pp, toolz
from cycler import cycler
from sortedcontainers import SortedDict
print(toolz.groupby(len, ["a", "bb", "c"]), list(SortedDict(b=1, a=2)))
number = pp.Word(pp.nums)
print((number + pp.Literal("+") + number).parse_string("12 + 3").as_list())
print(list(more_itertools.chunked(range(5), 2)), dict(cachetools.LRUCache(1)), len(cycler(c="rgb")))
"""
    assert guest.python(program).splitlines() == [
        "{1: ['a', 'c'], 2: ['bb']} ['a', 'b']",
        "['12', '+', '3']",
        "[[0, 1], [2, 3], [4]] {} 3",
    ]


def test_fonttools(guest: Guest) -> None:
    guest.run("pip install -q fonttools")
    program = """
from io import BytesIO
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont
pen = TTGlyphPen(None)
pen.moveTo((0, 0)); pen.lineTo((500, 0)); pen.lineTo((500, 500)); pen.closePath()
glyph = pen.glyph()
builder = FontBuilder(1000, isTTF=True)
builder.setupGlyphOrder([".notdef", "A"])
builder.setupCharacterMap({65: "A"})
builder.setupGlyf({".notdef": glyph, "A": glyph})
builder.setupHorizontalMetrics({".notdef": (600, 0), "A": (600, 0)})
builder.setupHorizontalHeader(ascent=800, descent=-200)
builder.setupNameTable({"familyName": "F"})
builder.setupOS2(); builder.setupPost()
data = BytesIO()
builder.save(data)
print(TTFont(BytesIO(data.getvalue())).getBestCmap())
"""
    assert guest.python(program) == "{65: 'A'}\n"
