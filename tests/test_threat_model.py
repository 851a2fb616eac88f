"""docs/threat-model.md names barriers and tests that exist.

Rules for the document: an ID occurs once, at the beginning of a row; "tried by" holds tests
(`tests/FILE.py`, `tests/FILE.py::NAME` or `web/tests/FILE.ts::TITLE`), names of attacks after
"attacks" and of targets after "fuzz".
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from fuzz.targets import TARGETS
from tests.limits.attacks import ATTACKS

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "threat-model.md"
ROW = re.compile(r"^\| (T\d{3}) \|(.*)\|$", re.MULTILINE)
UNFINISHED = "TODO-test"


def rows() -> list[tuple[str, list[str]]]:
    """ID and cells of each threat."""
    found = ROW.findall(DOCUMENT.read_text(encoding="utf-8"))
    return [(name, [cell.strip() for cell in rest.split(" | ")]) for name, rest in found]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def listed(cell: str, word: str) -> list[str]:
    """The names between `word` and the next semicolon."""
    parts = [part for part in cell.split(";") if part.strip().startswith(word)]
    return [name for part in parts for name in quoted(part)]


@cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def test_every_threat_has_an_id_of_its_own_and_all_cells() -> None:
    names = [name for name, _ in rows()]
    assert len(names) == len(set(names)) > 50
    assert [name for name, cells in rows() if len(cells) != 5 or "" in cells] == []


def test_every_test_that_is_named_exists() -> None:
    missing = []
    for name, cells in rows():
        for reference in quoted(cells[-1]):
            path, _, function = reference.partition("::")
            file = ROOT / path
            if path.startswith("web/tests/"):
                if not file.is_file() or function not in file.read_text(encoding="utf-8"):
                    missing.append(f"{name}: {reference}")
                continue
            if not path.startswith("tests/"):
                continue
            if not file.is_file() or (function and function not in functions_of(file)):
                missing.append(f"{name}: {reference}")
    assert missing == []


def test_every_place_that_is_named_exists() -> None:
    package = ROOT / "src" / "wasmsand"
    places = {(name, place) for name, cells in rows() for place in quoted(cells[-2])}
    gone = sorted(
        f"{name}: {place}"
        for name, place in places
        if not (package / place).exists() and not (ROOT / place).exists()
    )
    assert gone == []


def test_attacks_and_targets_are_named_in_both_places() -> None:
    named = {attack: name for name, cells in rows() for attack in listed(cells[-1], "attacks")}
    assert named == {attack.name: attack.threat for attack in ATTACKS}
    targets = {target for _, cells in rows() for target in listed(cells[-1], "fuzz")}
    assert targets == set(TARGETS)


def test_every_threat_has_a_test() -> None:
    assert [name for name, cells in rows() if UNFINISHED in " ".join(cells)] == []


def test_every_row_names_what_tries_it() -> None:
    """Except for what SECURITY.md does not promise."""
    assert [name for name, cells in rows() if not quoted(cells[-1])] == ["T134"]
