"""One table of a recipe file, read strictly.

Owns the checks of single fields. Rules: every field is taken once, with the type that it must have;
what is left at the end is an error; an error names the file and the field.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from userland.builder.errors import RecipeError

_T = TypeVar("_T")


class Table:
    """A TOML table from which every field is taken once; what is left is an error."""

    def __init__(self, file: Path, where: str, value: object) -> None:
        if not isinstance(value, dict):
            raise RecipeError(f"{file}: {where or 'the file'} must be a table")
        self._file = file
        self._where = where
        self._fields: dict[str, Any] = dict(value)

    def fail(self, field: str, problem: str) -> RecipeError:
        path = f"{self._where}.{field}" if self._where else field
        return RecipeError(
            f"{self._file}: {path} {problem}", "The fields are in userland/recipes/README.md."
        )

    def take(self, field: str, kind: type[_T], default: _T | None = None) -> _T:
        if field not in self._fields:
            if default is None:
                raise self.fail(field, "is missing")
            return default
        value = self._fields.pop(field)
        if not isinstance(value, kind):
            raise self.fail(field, f"must be a {kind.__name__}")
        return value

    def text(self, field: str, pattern: re.Pattern[str] | None = None) -> str:
        value = self.take(field, str)
        if not value or (pattern is not None and not pattern.fullmatch(value)):
            raise self.fail(field, f"cannot be {value!r}")
        return value

    def strings(self, field: str, default: Iterable[str] | None = None) -> tuple[str, ...]:
        values = self.take(field, list, None if default is None else list(default))
        if not all(isinstance(value, str) for value in values):
            raise self.fail(field, "must be a list of strings")
        return tuple(values)

    def has(self, field: str) -> bool:
        return field in self._fields

    def inner_path(self, field: str) -> str:
        """A path that must lie in the source tree."""
        value = self.text(field)
        if Path(value).is_absolute() or ".." in Path(value).parts:
            raise self.fail(field, "must lie in the source tree")
        return value

    def image_path(self, field: str) -> str:
        """An absolute path of the image."""
        value = self.text(field)
        if not value.startswith("/") or value != os.path.normpath(value) or value == "/":
            raise self.fail(field, f"must be an absolute path without dots, not {value!r}")
        return value

    def optional_strings(self, field: str) -> tuple[str, ...] | None:
        return self.strings(field) if field in self._fields else None

    def table(self, field: str, default: dict[str, Any] | None = None) -> Table:
        where = f"{self._where}.{field}" if self._where else field
        return Table(self._file, where, self.take(field, dict, default))

    def tables(self, field: str) -> list[Table]:
        where = f"{self._where}.{field}" if self._where else field
        return [
            Table(self._file, f"{where}[{index}]", value)
            for index, value in enumerate(self.take(field, list, []))
        ]

    def remaining_strings(self) -> tuple[tuple[str, str], ...]:
        """All fields left, as sorted pairs of strings."""
        for field, value in self._fields.items():
            if not isinstance(value, str):
                raise self.fail(field, "must be a string")
        pairs = tuple(sorted(self._fields.items()))
        self._fields.clear()
        return pairs

    def finish(self) -> None:
        for field in self._fields:
            raise self.fail(field, "is an unknown field")
