"""Writes docs/reference/options.md from the table of options of a sandbox.

`python scripts/option_table.py` writes the file. With `--check` it writes nothing, and exits with
status 1 if the file is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from wasmsand.sdk.option_table import Option, SandboxInterface  # noqa: E402
from wasmsand.sdk.options import OPTIONS  # noqa: E402

DOCUMENT = ROOT / "docs" / "reference" / "options.md"

_HEAD = """\
# Options of a sandbox

Written by `python scripts/option_table.py` from `src/wasmsand/sdk/options.py`; do not edit.

`Sandbox(...)`, `AsyncSandbox(...)` and `SandboxOptions(...)` take these options as keyword
arguments (`SandboxOptions` has no `isolation`). The columns JSON-RPC, HTTP and command line give
the name of an option in `create` of [JSON-RPC](../protocols/json-rpc.md), in
`POST /v1/sandboxes` of [HTTP](../protocols/http.md), and in `wasmsand run`, `shell`, `python` and
`mcp`. `-` means that the option cannot be set there. These commands also have `--timeout`, in
seconds; `wasmsand run` has `--mode`, and `wasmsand mcp` and `serve` have `--isolation`.
`wasm-sandbox` has only `--memory-limit`, in megabytes, and `--mode`.

| option | value | default | JSON-RPC | HTTP | command line | meaning |
|---|---|---|---|---|---|---|
"""


def document(table: Iterable[Option] = OPTIONS) -> str:
    """The text of the page."""
    return _HEAD + "".join(f"| {' | '.join(_cells(option))} |\n" for option in table)


def _cells(option: Option) -> list[str]:
    spellings = {
        SandboxInterface.JSON_RPC: option.json_name,
        SandboxInterface.HTTP: option.name,
        SandboxInterface.COMMAND_LINE: option.flag,
    }
    where = [
        f"`{spelling}`" if interface in option.interfaces else "-"
        for interface, spelling in spellings.items()
    ]
    return [
        f"`{option.name}`",
        option.kind.value,
        f"`{option.default!r}`".replace("'", '"'),
        *where,
        option.help,
    ]


def main(arguments: list[str]) -> int:
    """Write the file, or check it."""
    if DOCUMENT.exists() and DOCUMENT.read_text(encoding="utf-8") == document():
        return 0
    if arguments == ["--check"]:
        print(f"{DOCUMENT.relative_to(ROOT)} is out of date: run python scripts/option_table.py")
        return 1
    DOCUMENT.write_text(document(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
