#!/usr/bin/env python3
"""Gives functions that Python calls the parameters that Python passes to them.

    fit_methods.py FILE...

For recipes of packages, in `before`. Many extension modules leave out a parameter that they do not
use: a method without arguments is `f(self)`, and a cast makes it a `PyCFunction`, which is
`f(self, args)`. On most machines such a call works. In WebAssembly it traps, because the types of a
call through a pointer and of the function must be the same.

Owns this one change of sources. Rules: only functions that a table in the same file names as a
method of two parameters, a getter or a setter are changed, and only if they lack just the last
parameter; a name whose definition is not found is left alone; it is an error if nothing was
changed, since the recipe then does not need this program any more.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_POINTER = r"\s*(?:const\s+)?(?:struct\s+)?\w+\s*\*\s*(?:\w+|NPY_UNUSED\(\w+\))"
_USES = {
    re.compile(
        r"\(\s*PyCFunction\s*\)\s*(\w+)\s*,\s*METH_(?:NOARGS|O|VARARGS)\b(?!\s*\|)"
    ): _POINTER,
    re.compile(r"\(\s*getter\s*\)\s*(\w+)"): _POINTER,
    re.compile(r"\(\s*setter\s*\)\s*(\w+)"): f"{_POINTER},{_POINTER}",
}
"""How a table names a function, and the parameters of one that lacks the last."""
_DEFINITION = r"(\b{name}\s*\({parameters})(\s*\)\s*[{{;])"
_ADDED = r"\1, PyObject *Py_UNUSED(left_out)\2"


def fitted(text: str) -> tuple[str, list[str]]:
    """The text with the missing parameters, and the names of the functions that got one."""
    changed = []
    found = {(name, lacking) for use, lacking in _USES.items() for name in use.findall(text)}
    for name, parameters in sorted(found):
        pattern = re.compile(_DEFINITION.format(name=name, parameters=parameters))
        text, count = pattern.subn(_ADDED, text)
        if count:
            changed.append(name)
    return text, changed


def main(files: list[str]) -> int:
    total = 0
    for file in map(Path, files):
        text = file.read_bytes().decode("utf-8", "surrogateescape")
        new, changed = fitted(text)
        if changed:
            file.write_bytes(new.encode("utf-8", "surrogateescape"))
            print(f"{file}: {' '.join(changed)}")
        total += len(changed)
    if not total:
        print("fit_methods.py: no function lacks a parameter", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
