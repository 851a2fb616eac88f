"""Converts the values of `Backend` to and from JSON, for both ends of the pipe.

Rules: bytes are base64; names are those of the API in camelCase; `Params` validates everything
that is read, and raises `RpcError` for invalid input.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from wasmsand.rpc.params import Params, invalid
from wasmsand.sdk.backend import Completed, Ended, Output
from wasmsand.sdk.option_table import Option, OptionKind, SandboxInterface, json_name
from wasmsand.sdk.options import OPTIONS, SandboxOptions
from wasmsand.sdk.python_values import fits_json
from wasmsand.sdk.results import (
    DisplayItem,
    FileInfo,
    NetworkRules,
    PackageInfo,
    PortInfo,
    ProcessInfo,
    PythonError,
    PythonResult,
    Usage,
)

if TYPE_CHECKING:
    from wasmsand.sdk.mounts import Mount
    from wasmsand.sdk.network import Network, NetworkEvent

Record = FileInfo | NetworkRules | PackageInfo | PortInfo | ProcessInfo | Usage
_Record = TypeVar("_Record", FileInfo, NetworkRules, PackageInfo, PortInfo, ProcessInfo, Usage)
_STEP = 768 * 1024
"""Bytes encoded in one step; a multiple of 3."""


def data_out(data: bytes) -> str:
    """Bytes as base64. Encoded in steps, so that other threads can run in between."""
    if len(data) <= _STEP:
        return base64.b64encode(data).decode("ascii")
    steps = range(0, len(data), _STEP)
    return b"".join(base64.b64encode(data[at : at + _STEP]) for at in steps).decode("ascii")


def network_in(params: Params, name: str) -> Network:
    """The option `network`: a list of rules, or an object with the fields of `Network`."""
    # Imported here, because most sandboxes have no network.
    from wasmsand.sdk.network import network_from_plain

    return network_from_plain(name, _respelled(params.value(name), _python_names()))


def network_out(network: Network) -> dict[str, object]:
    """The inverse of `network_in`. Contains secrets."""
    from wasmsand.sdk.network import plain_network

    plain = _respelled(plain_network(network), {v: k for k, v in _python_names().items()})
    assert isinstance(plain, dict)
    return plain


def _python_names() -> dict[str, str]:
    """The names of the fields of `Network` in Python, by those in JSON."""
    from wasmsand.sdk.network import NETWORK_FIELDS

    return {json_name(name): name for name in NETWORK_FIELDS}


def _respelled(value: object, names: Mapping[str, str]) -> object:
    """A plain network with other names of fields, and those of its ceiling."""
    if not isinstance(value, dict):
        return value
    for key in value:
        if key not in names:
            raise invalid(f"network.{key[:80]} is unknown (known: {', '.join(names)})")
    respelled = {names[key]: item for key, item in value.items()}
    if "ceiling" in respelled:
        respelled["ceiling"] = _respelled(respelled["ceiling"], names)
    return respelled


def mounts_in(params: Params, name: str) -> dict[str, object]:
    """The option `mounts`: for each path a directory, or an object with the fields of `Mount`."""
    from wasmsand.sdk.mounts import mounts_from_plain

    given = params.value(name)
    names = {json_name(field): field for field in _MOUNT_FIELDS}
    if not isinstance(given, dict):
        raise invalid(f"{name} must be an object")
    plain: dict[str, object] = {}
    for path, mount in given.items():
        if isinstance(mount, dict):
            unknown = [key[:80] for key in mount if key not in names]
            if unknown:
                raise invalid(f"{name}: {unknown[0]} is unknown (known: {', '.join(names)})")
            mount = {names[key]: value for key, value in mount.items()}
        plain[path] = mount
    return mounts_from_plain(name, plain)


def mounts_out(mounts: Mapping[str, Mount]) -> dict[str, object]:
    """The inverse of `mounts_in`."""
    return {
        path: {json_name(field): getattr(mount, field) for field in _MOUNT_FIELDS}
        for path, mount in mounts.items()
    }


_MOUNT_FIELDS = ("source", "mode", "limit_bytes", "max_inodes")
_READERS: Mapping[OptionKind, Callable[[Params, str], object]] = {
    OptionKind.COUNT: Params.integer,
    OptionKind.MILLISECONDS: Params.number,
    OptionKind.VARIABLES: Params.variables,
    OptionKind.GUEST_DIRECTORY: Params.text,
    OptionKind.HOST_DIRECTORY: Params.text,
    OptionKind.PACKAGES: Params.packages,
    OptionKind.NETWORK: network_in,
    OptionKind.MOUNTS: mounts_in,
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
    out = {option.json_name: getattr(options, option.name) for option in below}
    if options.network is not None:
        out["network"] = network_out(options.network)
    out["mounts"] = mounts_out(options.mounts)
    return out


_RECORD_READERS: Mapping[str, Callable[[Params, str], Any]] = {
    "bool": Params.flag,
    "int": Params.integer,
    "float": Params.number,
    "str": Params.text,
    "tuple[str, ...]": lambda params, name: tuple(params.texts(name)),
}
"""The reader of a field of the SDK's dataclasses, by the field's type."""


def _fields_of(kind: type[Any]) -> tuple[tuple[str, str, str], ...]:
    return tuple((field.name, json_name(field.name), str(field.type)) for field in fields(kind))


_RECORDS: Mapping[type[Record], tuple[tuple[str, str, str], ...]] = {
    kind: _fields_of(kind)
    for kind in (FileInfo, NetworkRules, PackageInfo, PortInfo, ProcessInfo, Usage)
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


def event_out(event: NetworkEvent) -> dict[str, object]:
    """An event of the network."""
    return {json: getattr(event, name) for name, json, _ in _fields_of(type(event))}


def event_in(params: Params) -> NetworkEvent:
    """The inverse of `event_out`."""
    from wasmsand.sdk.network import NetworkEvent

    given: dict[str, Any] = {
        name: _RECORD_READERS.get(type_, Params.text)(params, json)
        for name, json, type_ in _fields_of(NetworkEvent)
    }
    return NetworkEvent(**given)


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


def item_out(item: DisplayItem) -> dict[str, object]:
    """An item; its forms are those of a notebook."""
    return {
        "data": item.as_json(),
        "metadata": dict(item.metadata),
        "isMain": item.is_main,
        "displayId": item.display_id,
    }


def python_result_out(result: PythonResult) -> dict[str, object]:
    """The result of a run of a Python session."""
    has_value = result.has_value and fits_json(result.value)
    error = result.error
    return {
        "stdout": result.stdout,
        "stderr": result.stderr,
        "value": result.value if has_value else None,
        "hasValue": has_value,
        "repr": result.repr,
        "error": None if error is None else _error_out(error),
        "executionTimeMs": round(result.execution_time_ms, 3),
        "timedOut": result.timed_out,
        "truncated": result.truncated,
        "results": [item_out(item) for item in result.results],
    }


def _error_out(error: PythonError) -> dict[str, object]:
    return {"type": error.type, "message": error.message, "traceback": error.traceback}
