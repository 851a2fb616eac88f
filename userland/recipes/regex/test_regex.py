"""regex: what Python's own module has not, and its errors."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[[str], str]


def test_fuzzy_recursive_and_unicode_patterns_match(full_python: Run) -> None:
    printed = full_python(
        r"""
import regex
print(regex.search(r"(?b)(?:colour){e<=2}", "what a culor it is"))
print(regex.findall(r"(?V1)[[a-z]--[aeiou]]+", "regular expressions"))
print(regex.match(r"(\((?:[^()]|(?1))*\))", "(a(b)c(d(e)))x").group())
print(regex.match(r"(?:(\w+)\W*)+", "one two three").captures(1))
print(regex.findall(r"\L<words>", "foo bar baz", words=["foo", "baz"]))
print(regex.findall(r"\w{3}", "abcdef", overlapped=True))
print(regex.fullmatch(r"\d{4}-\d{2}", "2024-", partial=True).partial)
print(ascii(regex.findall(r"\p{Script=Greek}+|\p{Lu}", "\u03b1\u03b2 Delta \u03a9")))
print([len(cluster) for cluster in regex.findall(r"\X", "e\u0301a\U0001F468\u200d\U0001F469")])
print(regex.sub(r"(?V1i)STRASSE", "road", "Stra\u00dfe"))
print(regex.split(r"(?V1)(?=[A-Z])", "splitCamelCase"))
print(regex.subf(r"(?P<a>\w+) (?P<b>\w+)", "{b[0]} {a[0]}", "hello world"))
print([match.span() for match in regex.finditer(r"(?r)\w\w", "abcde")])
"""
    )
    assert printed.splitlines() == [
        "<regex.Match object; span=(7, 12), match='culor', fuzzy_counts=(1, 0, 1)>",
        "['r', 'g', 'l', 'r', 'xpr', 'ss', 'ns']",
        "(a(b)c(d(e)))",
        "['one', 'two', 'three']",
        "['foo', 'baz']",
        "['abc', 'bcd', 'cde', 'def']",
        "True",
        r"['\u03b1\u03b2', 'D', '\u03a9']",
        "[2, 1, 3]",
        "road",
        "['split', 'Camel', 'Case']",
        "world hello",
        "[(3, 5), (1, 3)]",
    ]


def test_bad_patterns_and_timeouts_are_errors(full_python: Run) -> None:
    printed = full_python(
        r"""
import pickle
import regex
try:
    regex.compile("(a")
except regex.error as error:
    print(error)
try:
    regex.search(r"(?:(?:a|b|ab)+){s<=3}$", "ab" * 4000 + "c" * 9, timeout=0.05)
except TimeoutError as error:
    print(error)
pattern = pickle.loads(pickle.dumps(regex.compile(r"a(?P<x>b)c")))
print(pattern, pattern.groupindex, regex._regex.__name__)
"""
    )
    assert printed.splitlines() == [
        "missing ) at position 2",
        "regex timed out",
        "regex.Regex('a(?P<x>b)c', flags=regex.V0) {'x': 1} regex._regex",
    ]


def test_metadata_says_that_the_full_interpreter_is_needed(full_python: Run) -> None:
    program = """
from importlib.metadata import distribution
found = distribution("regex")
print(found.version, found.read_text("native.txt"), end="")
print(found.metadata["License-Expression"], [str(f) for f in found.files if "LICENSE" in str(f)])
"""
    assert full_python(program).splitlines() == [
        "2026.11.9 required",
        "Apache-2.0 AND CNRI-Python ['regex-2026.11.9.dist-info/licenses/LICENSE.txt']",
    ]
