"""Reads the cases: one shell file per subject.

A file begins with a comment about its subject, and a set-up that runs before each of its cases. A
case is a heading and its script:

    # Sorting.
    #| needs: coreutils grep
    printf '3\\n1\\n2\\n' > numbers

    #: sorts by value
    sort -n numbers

    #: tells of a missing file
    #| xfail: L008 what differs
    sort nowhere

Attributes are `#| key: value` lines. `needs` (of the file, or more of a case) names the
recipes whose programs are used, besides bash and coreutils. `xfail` marks a known
difference, by its ID in docs/limitations.md. `ignore` lists what is not compared
(stdout, stderr, files), because it depends on timing or on the machine.

A Python program is a case of its own: every file of `cases/python`, run as `program.py`.

Rule: a script depends only on its needs, not on process IDs, sizes of directories or the order of
directory entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

CASES = Path(__file__).resolve().parent / "cases"
ALWAYS_NEEDED: Final = frozenset({"bash", "coreutils"})
ASPECTS: Final = frozenset({"stdout", "stderr", "files"})
_PYTHON_NEEDS: Final = frozenset({"findutils", "gawk", "python"})
_HEADING: Final = "#: "
_ATTRIBUTE: Final = "#| "


class BadCaseFile(Exception):
    """A case file that breaks the rules above."""


@dataclass(frozen=True)
class Case:
    """One script, to be run on both sides."""

    subject: str
    name: str
    script: str
    needs: frozenset[str] = frozenset()
    xfail: str | None = None
    ignore: frozenset[str] = frozenset()

    @property
    def identity(self) -> str:
        """The case's name among all cases."""
        return f"{self.subject}: {self.name}"


def load_cases(folder: Path = CASES) -> list[Case]:
    """Every case of every file, in order."""
    scripts = [case for path in sorted(folder.glob("*.sh")) for case in read_cases(path)]
    return scripts + [python_case(path) for path in sorted(folder.glob("python/*.py"))]


def python_case(path: Path) -> Case:
    """A Python program as a case."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    own = _attributes(path, lines)
    end = "END OF PROGRAM"
    script = f"cat > program.py <<'{end}'\n{''.join(_code(lines))}{end}\npython3 program.py\n"
    name = path.stem.replace("_", " ")
    return Case("python programs", name, script, _PYTHON_NEEDS | own.needs, own.xfail, own.ignore)


def read_cases(path: Path) -> list[Case]:
    """The cases of one file."""
    set_up, *parts = _split(path)
    general = _attributes(path, set_up[1])
    cases = []
    for heading, lines in parts:
        own = _attributes(path, lines)
        cases.append(
            Case(
                subject=path.stem,
                name=heading,
                script="".join([*_code(set_up[1]), *_code(lines)]),
                needs=general.needs | own.needs,
                xfail=own.xfail,
                ignore=general.ignore | own.ignore,
            )
        )
    names = [case.name for case in cases]
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise BadCaseFile(f"{path.name}: several cases have the name {twice}")
    return cases


def _split(path: Path) -> list[tuple[str, list[str]]]:
    """(heading, lines) of each part; the first part is the set-up, which has no heading."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.startswith(_HEADING):
            parts.append((line.removeprefix(_HEADING).strip(), []))
        else:
            parts[-1][1].append(line)
    return parts


def _code(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith(_ATTRIBUTE)]


def _attributes(path: Path, lines: list[str]) -> Case:
    """The attributes among these lines, as a case without a script."""
    found: dict[str, str] = {}
    for line in lines:
        if line.startswith(_ATTRIBUTE):
            key, _, value = line.removeprefix(_ATTRIBUTE).partition(":")
            found[key.strip()] = value.strip()
    ignore = frozenset(found.pop("ignore", "").split())
    needs = frozenset(found.pop("needs", "").split())
    xfail = found.pop("xfail", None)
    if found or not ignore <= ASPECTS:
        raise BadCaseFile(f"{path.name}: unknown attribute {[*found, *(ignore - ASPECTS)]}")
    return Case("", "", "", needs, xfail, ignore)
