"""PyYAML: the same documents in Python and, in the full interpreter, by libyaml."""

from __future__ import annotations

from collections.abc import Callable

from wasmsand import Sandbox

Run = Callable[[str], str]

PLAIN = """
import datetime
import yaml
text = '''
invoice: 34843
date: 2001-01-23
bill-to: &id001
  given: Chris
  lines: |
    458 Walkman Dr.
    Suite #292
ship-to: *id001
product:
- {sku: BL394D, quantity: 4, price: 450.00}
unicode: "\\\\u263a"
'''
document = yaml.safe_load(text)
print(document["date"], document["ship-to"] is document["bill-to"], document["product"])
print(yaml.safe_dump(document["bill-to"]), end="")
for bad in ("a: [1, 2", "a: b: c", "!!python/object/apply:os.system ['true']"):
    try:
        yaml.safe_load(bad)
    except yaml.YAMLError as error:
        print(type(error).__name__, error.problem)
"""
PRINTED = [
    "2001-01-23 True [{'sku': 'BL394D', 'quantity': 4, 'price': 450.0}]",
    "given: Chris",
    "lines: '458 Walkman Dr.",
    "",
    "  Suite #292",
    "",
    "  '",
    "ParserError expected ',' or ']', but got '<stream end>'",
    "ScannerError mapping values are not allowed here",
    "ConstructorError could not determine a constructor for the tag"
    " 'tag:yaml.org,2002:python/object/apply:os.system'",
]


def test_documents_are_read_and_written_by_the_small_interpreter(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/program.py", PLAIN + "print(yaml.__with_libyaml__)\n")
    env = {"PYTHONPATH": "/usr/lib/python/pyyaml"}
    result = sandbox.commands.run("/usr/libexec/python3 /tmp/program.py", env=env)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [*PRINTED, "False"]


def test_documents_are_the_same_in_the_full_interpreter(full_python: Run) -> None:
    assert full_python(PLAIN + "print(yaml.__with_libyaml__)\n").splitlines() == [*PRINTED, "True"]


def test_libyaml_reads_and_writes_as_python_does(full_python: Run) -> None:
    printed = full_python(
        r"""
import io
import yaml
text = "a: &x [1, 2.5, ~, yes]\nb: *x\nc: {d: '\u00fc'}\ne: |\n  two\n  lines\n"
pairs = [(yaml.SafeLoader, yaml.SafeDumper), (yaml.CSafeLoader, yaml.CSafeDumper)]
documents = [yaml.load(text, Loader=loader) for loader, _ in pairs]
texts = [yaml.dump(documents[0], Dumper=dumper, allow_unicode=True) for _, dumper in pairs]
print(documents[0] == documents[1], texts[0] == texts[1], documents[1]["a"])
print([type(event).__name__[:-5] for event in yaml.parse("a: [b]", Loader=yaml.CLoader)][1:-2])
print(ascii(yaml.load(io.BytesIO("- \u00e4\n".encode("utf-16")), Loader=yaml.CSafeLoader)))
for bad in ("a: [1, 2", "a: b: c", "\x07"):
    try:
        yaml.load(bad, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        print(type(error).__name__, getattr(error, "problem", None) or error.reason)
class Stream:
    def read(self, size):
        raise RuntimeError("no more")
try:
    yaml.load(Stream(), Loader=yaml.CSafeLoader)
except RuntimeError as error:
    print(error)
"""
    )
    assert printed.splitlines() == [
        "True True [1, 2.5, None, True]",
        "['DocumentStart', 'MappingStart', 'Scalar', 'SequenceStart', 'Scalar', 'SequenceEnd',"
        " 'MappingEnd']",
        r"['\xe4']",
        "ParserError did not find expected ',' or ']'",
        "ScannerError mapping values are not allowed in this context",
        "ReaderError control characters are not allowed",
        "no more",
    ]


def test_metadata_says_that_the_full_interpreter_is_faster(full_python: Run) -> None:
    program = """
from importlib.metadata import distribution
found = distribution("PyYAML")
print(found.version, found.read_text("native.txt"), end="")
"""
    assert full_python(program) == "6.0.3 optional\n"
