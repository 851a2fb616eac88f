"""The table of options: every interface offers the options it may set, in the same words."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scripts import option_table
from wasmsand import AsyncSandbox, Sandbox, SandboxOptions
from wasmsand.cli import line
from wasmsand.cli.options import add_sandbox_options, sandbox_options
from wasmsand.http.messages import CreateSandbox, option_fields
from wasmsand.http.openapi import document
from wasmsand.http.routes import ROUTES
from wasmsand.http.settings import Settings
from wasmsand.kernel.limits import Limits
from wasmsand.rpc import values
from wasmsand.rpc.methods import METHODS
from wasmsand.rpc.params import Params
from wasmsand.sdk.option_table import Option, OptionKind, SandboxInterface
from wasmsand.sdk.options import OPTIONS, SETTINGS

pytestmark = pytest.mark.no_userland

DOCS = Path(__file__).resolve().parents[2] / "docs"
PRETEND = Option(
    "max_wishes",
    OptionKind.COUNT,
    3,
    "wishes of one sandbox",
    frozenset(SandboxInterface),
    flag="--wishes",
    is_limit=True,
    is_below_seam=True,
)
TABLE = (*OPTIONS, PRETEND)
JSON_VALUES: dict[OptionKind, Any] = {
    OptionKind.COUNT: 7,
    OptionKind.MILLISECONDS: 1500,
    OptionKind.VARIABLES: {"NAME": "value"},
    OptionKind.GUEST_DIRECTORY: "/srv",
    OptionKind.HOST_DIRECTORY: "/srv",
    OptionKind.PACKAGES: ["six"],
    OptionKind.NETWORK: ["api.example.com:443"],
    OptionKind.MOUNTS: {"/mnt/data": "/srv"},
}
WORDS = {
    OptionKind.COUNT: "7",
    OptionKind.VARIABLES: "NAME=value",
    OptionKind.GUEST_DIRECTORY: "/srv",
    OptionKind.HOST_DIRECTORY: "/srv",
    OptionKind.PACKAGES: "six",
    OptionKind.NETWORK: "api.example.com:443",
    OptionKind.MOUNTS: "/srv:/mnt/data",
}


def those_of(interface: SandboxInterface, table: tuple[Option, ...] = OPTIONS) -> list[Option]:
    return [option for option in table if interface in option.interfaces]


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """The values as a sandbox has them."""
    return {option.name: option.check(given[option.name]) for option in SETTINGS}


def flags_of(table: tuple[Option, ...]) -> dict[str, argparse.Action]:
    parser = argparse.ArgumentParser(add_help=False)
    add_sandbox_options(parser, table)
    return {word: action for action in parser._actions for word in action.option_strings}


# A new option reaches every interface from the table alone.


def test_a_new_option_is_a_parameter_of_json_rpc() -> None:
    assert "maxWishes" in [option.json_name for option in values.options_of(TABLE)]
    assert values.options_in(Params({"maxWishes": 9}), TABLE) == {"max_wishes": 9}


def test_a_new_option_is_a_field_of_http() -> None:
    message: Any = msgspec.defstruct("Message", option_fields(TABLE))
    assert msgspec.convert({"max_wishes": 9}, message).max_wishes == 9
    with pytest.raises(msgspec.ValidationError, match=r"at `\$\.max_wishes`"):
        msgspec.convert({"max_wishes": 0}, message)


def test_a_new_option_is_a_flag_of_the_command_line() -> None:
    flag = flags_of(TABLE)["--wishes"]
    assert (flag.dest, flag.default) == ("max_wishes", 3)
    assert "wishes of one sandbox" in (flag.help or "")


def test_a_new_option_is_in_the_reference() -> None:
    row = "| `max_wishes` | a whole number, at least 1 | `3` | `maxWishes` | `max_wishes` |"
    assert f"{row} `--wishes` | wishes of one sandbox |\n" in option_table.document(TABLE)


# What is written by hand agrees with the table.


@pytest.mark.parametrize("make", [Sandbox, AsyncSandbox, AsyncSandbox.create])
def test_the_constructor_has_every_option_with_its_default(make: Any) -> None:
    parameters = inspect.signature(make).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    expected = {option.name: option.default or None for option in OPTIONS}
    assert {name: value or None for name, value in defaults.items()} == expected
    assert {p.kind for p in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}


def test_the_constructor_gives_every_option_to_the_sandbox(monkeypatch: Any) -> None:
    opened: list[SandboxOptions] = []

    class Opened(Exception):
        pass

    def open_backend(options: SandboxOptions, *_kind: str) -> None:
        opened.append(options)
        raise Opened

    monkeypatch.setattr("wasmsand.sdk.sandbox.open_backend", open_backend)
    given = {option.name: JSON_VALUES[option.kind] for option in SETTINGS}
    with pytest.raises(Opened):
        Sandbox(**given)
    assert {name: getattr(opened[0], name) for name in given} == checked(given)


def test_the_documentation_of_the_constructor_explains_every_option_in_the_same_words() -> None:
    text = inspect.getdoc(Sandbox) or ""
    listed = text[text.index("Options:") : text.index("A sandbox may be used")]
    found = re.findall(r"(?ms)^- `(\w+)`: (.*?)(?=\n- |\n\n)", listed)
    said = {name: " ".join(words.split()) for name, words in found}
    assert said == {option.name: option.help for option in OPTIONS}


def test_the_reference_is_current() -> None:
    assert option_table.DOCUMENT.read_text("utf-8") == option_table.document(), (
        "run python scripts/option_table.py"
    )


def test_every_limit_of_the_kernel_is_an_option() -> None:
    limits = {option.name: option.default for option in OPTIONS if option.is_limit}
    assert limits == {row.name: row.default for row in fields(Limits)}
    assert SandboxOptions().limits() == Limits()


# Each interface takes what the table says, and nothing else.


@pytest.mark.parametrize("option", SETTINGS, ids=lambda option: option.name)
def test_json_rpc_takes_the_options_that_it_may_set(option: Option) -> None:
    method = METHODS["create"]
    known = [*method.required, *method.optional]
    assert (option.json_name in known) == (SandboxInterface.JSON_RPC in option.interfaces)
    given = values.options_in(Params({option.json_name: JSON_VALUES[option.kind]}))
    expected = {option.name: JSON_VALUES[option.kind]} if option.json_name in known else {}
    assert given.keys() == expected.keys()
    assert SandboxOptions(**given) == SandboxOptions(**expected)
    nothing = values.options_in(Params({option.json_name: None}))
    assert getattr(SandboxOptions(**nothing), option.name) == (
        None if option.kind.has_none else option.default
    )


def test_a_process_is_told_of_every_option_that_a_backend_needs() -> None:
    needed = {option.name for option in OPTIONS if option.is_below_seam}
    given = {option.name: JSON_VALUES[option.kind] for option in SETTINGS}
    sent = json.loads(json.dumps(values.options_out(SandboxOptions(**given))))
    received = values.options_in(Params(sent))
    assert received.keys() == needed
    assert SandboxOptions(**received) == SandboxOptions(**{name: given[name] for name in needed})


def test_the_reference_of_json_rpc_names_every_parameter_of_create() -> None:
    page = (DOCS / "protocols" / "json-rpc.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `create` \| (.*)$", page)
    named = [name for row in rows for name in re.findall(r"`(\w+)`(?:\?| \()", row)]
    method = METHODS["create"]
    assert sorted(named) == sorted([*method.required, *method.optional])


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_http_takes_the_options_that_it_may_set(option: Option) -> None:
    is_field = option.name in CreateSandbox.__struct_fields__
    assert is_field == (SandboxInterface.HTTP in option.interfaces)
    if is_field:
        value = JSON_VALUES[option.kind]
        assert getattr(msgspec.convert({option.name: value}, CreateSandbox), option.name) == value
        schema = msgspec.json.decode(document(ROUTES, "1"))["components"]["schemas"]
        described = schema["CreateSandbox"]["properties"][option.name]
        assert described["description"] == option.help.replace("None", "null")


def test_a_server_bounds_every_limit_that_a_client_can_ask_for() -> None:
    in_quota = {"memory_limit_bytes", "fs_limit_bytes"}
    limits = {option.name for option in those_of(SandboxInterface.HTTP) if option.is_limit}
    assert {name for name in limits if Settings().most_of(name) is None} == in_quota


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_the_command_line_takes_the_options_that_it_may_set(option: Option) -> None:
    flags = flags_of(OPTIONS)
    assert bool(option.flag) == (SandboxInterface.COMMAND_LINE in option.interfaces)
    if not option.flag:
        assert option.name not in [action.dest for action in flags.values()]
        return
    parser = argparse.ArgumentParser()
    add_sandbox_options(parser)
    given = sandbox_options(parser.parse_args([option.flag, WORDS[option.kind]]))
    assert getattr(given, option.name) == option.check(JSON_VALUES[option.kind])
    default = sandbox_options(parser.parse_args([]))
    assert getattr(default, option.name) == option.default


def test_the_line_protocol_takes_the_options_that_it_may_set(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        line.main(["--help"])
    flags = re.findall(r"(?m)^  (--[\w-]+) <", capsys.readouterr().out)
    own = {"--disk-image", "--mode"}
    assert set(flags) - own == {option.flag for option in those_of(SandboxInterface.LINE)}
