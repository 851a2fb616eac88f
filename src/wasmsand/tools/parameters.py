"""One parameter of a tool: its JSON Schema for the model, and the validation of its value.

Rules: both come from the same description, so they cannot differ. A model's input is never
trusted: a wrong type, a value out of range, a missing or unknown name raises `InvalidToolInput`,
whose text tells the model what to send instead. `null` means that the parameter is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wasmsand.wire.strict_json import kind_of

Kind = Literal["string", "integer", "boolean", "variables", "integers"]

_KIND_WORDS: Mapping[Kind, str] = {
    "string": "a string",
    "integer": "an integer",
    "boolean": "true or false",
    "variables": "an object of strings",
    "integers": "an array of integers",
}


LONGEST_TEXT = 16 * 1024 * 1024
_MOST_VARIABLES = 1_000
_MOST_INTEGERS = 16


class InvalidToolInput(ValueError):
    """The input of a tool does not match its schema."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One named input of a tool."""

    name: str
    kind: Kind
    description: str
    required: bool = False
    default: str | int | bool | None = None
    """The value that the tool uses if the parameter is missing; None if a missing parameter has a
    special meaning."""
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    may_be_empty: bool = True
    longest: int = LONGEST_TEXT
    """Most characters of a string, or of all variables together."""

    def schema(self) -> dict[str, Any]:
        """This parameter as JSON Schema."""
        schema: dict[str, Any] = {"description": self.description}
        if self.kind == "variables":
            schema |= {"type": "object", "additionalProperties": {"type": "string"}}
        elif self.kind == "integers":
            schema |= {"type": "array", "items": {"type": "integer"}}
        else:
            schema["type"] = self.kind
        if self.choices:
            schema["enum"] = list(self.choices)
        if not self.may_be_empty:
            schema["minLength"] = 1
        for keyword, value in (
            ("default", self.default),
            ("minimum", self.minimum),
            ("maximum", self.maximum),
        ):
            if value is not None:
                schema[keyword] = value
        return schema

    def check(self, value: object) -> Any:
        """Check `value` and return it in the tool's form. Raises `InvalidToolInput`."""
        if self.kind == "string":
            return self._text(value)
        if self.kind == "integer":
            return self._integer(value)
        if self.kind == "boolean":
            if not isinstance(value, bool):
                raise self._wrong_type(value)
            return value
        if self.kind == "integers":
            return self._integers(value)
        return self._variables(value)

    def _text(self, value: object) -> str:
        if not isinstance(value, str):
            raise self._wrong_type(value)
        self._check_length(len(value))
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidToolInput(
                f"{self.name} contains half of a surrogate pair, which is not a character"
            ) from None
        if not value and not self.may_be_empty:
            raise InvalidToolInput(f"{self.name} must not be empty")
        if self.choices and value not in self.choices:
            words = " or ".join(json.dumps(choice) for choice in self.choices)
            raise InvalidToolInput(f"{self.name} must be {words}, not {_shown(value)}")
        return value

    def _check_length(self, length: int) -> None:
        if length > self.longest:
            raise InvalidToolInput(
                f"{self.name} has {length} characters, at most {self.longest} are possible; write "
                "long content to a file in parts"
            )

    def _integers(self, value: object) -> list[int]:
        if not isinstance(value, list | tuple):
            raise self._wrong_type(value)
        if len(value) > _MOST_INTEGERS:
            raise InvalidToolInput(f"{self.name} has {len(value)} items, too many")
        return [self._integer(item) for item in value]

    def _integer(self, value: object) -> int:
        # JSON has one kind of number: 10.0 is the integer 10.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong_type(value)
        if self.minimum is not None and value < self.minimum:
            raise InvalidToolInput(f"{self.name} must be at least {self.minimum}, not {value}")
        if self.maximum is not None and value > self.maximum:
            raise InvalidToolInput(f"{self.name} must be at most {self.maximum}, not {value}")
        return value

    def _variables(self, value: object) -> dict[str, str]:
        if not isinstance(value, Mapping):
            raise self._wrong_type(value)
        if len(value) > _MOST_VARIABLES:
            raise InvalidToolInput(f"{self.name} has {len(value)} entries, too many")
        for key, item in value.items():
            if not isinstance(key, str) or not isinstance(item, str):
                raise InvalidToolInput(
                    f"{self.name}[{_shown(key)}] must be a string, not {kind_of(item)}"
                )
        self._check_length(sum(len(key) + len(item) for key, item in value.items()))
        return dict(value)

    def _wrong_type(self, value: object) -> InvalidToolInput:
        return InvalidToolInput(
            f"{self.name} must be {_KIND_WORDS[self.kind]}, not {kind_of(value)}"
        )


def object_schema(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """The JSON Schema of a tool's whole input."""
    parameters = tuple(parameters)
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema() for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }


def checked_input(parameters: Iterable[Parameter], sent: object) -> dict[str, Any]:
    """Validate `sent`; missing parameters get their default."""
    if not isinstance(sent, Mapping):
        raise InvalidToolInput(f"the input must be a JSON object, not {kind_of(sent)}")
    parameters = tuple(parameters)
    names = [parameter.name for parameter in parameters]
    unknown = [_shown(name) for name in sent if name not in names]
    if unknown:
        raise InvalidToolInput(
            f"unknown parameter {', '.join(unknown[:5])}; use one of: {', '.join(names)}"
        )
    values: dict[str, Any] = {}
    for parameter in parameters:
        value = sent.get(parameter.name)
        if value is not None:
            values[parameter.name] = parameter.check(value)
        elif parameter.required:
            raise InvalidToolInput(f"{parameter.name} is missing: {parameter.description}")
        else:
            values[parameter.name] = parameter.default
    return values


def _shown(value: object) -> str:
    """`value` for a message, shortened: it may be long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
