"""Converts the values of `Backend` to and from JSON, for both ends of the pipe.

Rules: bytes are base64; names are those of the API in camelCase; `Params` validates everything
that is read, and raises `RpcError` for invalid input.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from wasmsand.rpc.params import Params, invalid
from wasmsand.sdk.backend import Completed, Ended, Output
from wasmsand.sdk.option_table import Option, OptionKind, SandboxInterface, json_name
from wasmsand.sdk.options import OPTIONS, SandboxOptions
from wasmsand.sdk.results import FileInfo, PackageInfo, PortInfo, ProcessInfo, Usage

Record = FileInfo | PackageInfo | PortInfo | ProcessInfo | Usage
_Record = TypeVar("_Record", FileInfo, PackageInfo, PortInfo, ProcessInfo, Usage)
_STEP = 768 * 1024
"""Bytes encoded in one step; a multiple of 3."""


def data_out(data: bytes) -> str:
    """Bytes as base64. Encoded in steps, so that other threads can run in between."""
    if len(data) <= _STEP:
        return base64.b64encode(data).decode("ascii")
    steps = range(0, len(data), _STEP)
    return b"".join(base64.b64encode(data[at : at + _STEP]) for at in steps).decode("ascii")


_READERS: Mapping[OptionKind, Callable[[Params, str], object]] = {
    OptionKind.COUNT: Params.integer,
    OptionKind.MILLISECONDS: Params.number,
    OptionKind.VARIABLES: Params.variables,
    OptionKind.GUEST_DIRECTORY: Params.text,
    OptionKind.HOST_DIRECTORY: Params.text,
    OptionKind.PACKAGES: Params.packages,
}
"""The reader of each kind of option."""


def options_of(table: Iterable[Option] = OPTIONS) -> tuple[Option, ...]:
    """The options that a client may set."""
    return tuple(option for option in table if SandboxInterface.JSON_RPC in option.interfaces)


def options_in(params: Params, table: Iterable[Option] = OPTIONS) -> dict[str, Any]:
    """The options that a client has set. Null means the default, or None where None is a valid
    value."""
    given: dict[str, Any] = {}
    for option in options_of(table):
        name = option.json_name
        if params.has(name):
            given[option.name] = _READERS[option.kind](params, name)
        elif params.is_given(name) and option.kind.has_none:
            given[option.name] = None
    return given


def options_out(options: SandboxOptions) -> dict[str, object]:
    """The parameters of `create`."""
    below = [option for option in options_of() if option.is_below_seam]
    return {option.json_name: getattr(options, option.name) for option in below}


_RECORD_READERS: Mapping[str, Callable[[Params, str], Any]] = {
    "bool": Params.flag,
    "int": Params.integer,
    "float": Params.number,
    "str": Params.text,
    "tuple[str, ...]": lambda params, name: tuple(params.texts(name)),
}
"""The reader of a field of the SDK's dataclasses, by the field's type."""


_RECORDS: Mapping[
    type[FileInfo | PackageInfo | PortInfo | ProcessInfo | Usage], tuple[tuple[str, str, str], ...]
] = {
    kind: tuple((field.name, json_name(field.name), str(field.type)) for field in fields(kind))
    for kind in (FileInfo, PackageInfo, PortInfo, ProcessInfo, Usage)
}
"""Name, JSON name and type of each field of the SDK's dataclasses."""


def record_out(record: Record) -> dict[str, object]:
    """The fields of a dataclass of the SDK."""
    spelled = {json: getattr(record, name) for name, json, _ in _RECORDS[type(record)]}
    return {json: list(v) if isinstance(v, tuple) else v for json, v in spelled.items()}


def record_in(params: Params, kind: type[_Record]) -> _Record:
    """The inverse of `record_out`."""
    return kind(
        **{name: _RECORD_READERS[type_](params, json) for name, json, type_ in _RECORDS[kind]}
    )


def ended_out(ended: Ended) -> dict[str, object]:
    """How a command ended."""
    return {
        "exitCode": ended.exit_code,
        "timedOut": ended.timed_out,
        "executionTimeMs": ended.seconds * 1000,
        "notices": list(ended.notices),
    }


def ended_in(params: Params) -> Ended:
    """The inverse of `ended_out`."""
    return Ended(
        exit_code=params.integer("exitCode"),
        timed_out=params.flag("timedOut"),
        seconds=params.number("executionTimeMs") / 1000,
        notices=tuple(params.texts("notices")),
    )


def completed_out(completed: Completed) -> dict[str, object]:
    """How a command ended, and its output."""
    return {
        **ended_out(completed),
        "stdout": data_out(completed.stdout),
        "stderr": data_out(completed.stderr),
        "truncated": completed.truncated,
    }


def completed_in(params: Params) -> Completed:
    """The inverse of `completed_out`."""
    stdout, stderr = params.data("stdout"), params.data("stderr")
    return Completed.of(ended_in(params), stdout, stderr, params.flag("truncated"))


def outputs_out(outputs: Sequence[Output]) -> list[dict[str, object]]:
    """Pieces of output, in order."""
    return [{"fd": output.fd, "data": data_out(output.data)} for output in outputs]


def outputs_in(params: Params, name: str) -> tuple[Output, ...]:
    """The inverse of `outputs_out`."""
    return tuple(Output(item.integer("fd"), item.data("data")) for item in params.objects(name))


def descriptors_in(params: Params, name: str) -> tuple[int, ...]:
    """Numbers of additional descriptors."""
    numbers = params.integers(name)
    if any(not 3 <= number < 256 for number in numbers):
        raise invalid(f"{name} must be descriptors from 3 to 255")
    return tuple(numbers)
