"""How wasm-opt is started."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from userland.builder.cache import Cache
from userland.builder.commands import Commands
from userland.builder.errors import NoNetwork
from userland.builder.wasm_opt import InstalledWasmOpt, wasm_opt_meanwhile

QUICK = "--liftoff-only"


def _string(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def module_bytes(*imports: str, size: int) -> bytes:
    """A module with these imports of `linux`, filled up to about this size."""
    types = b"\x01\x60\x00\x00"
    listed = b"".join(_string("linux") + _string(name) + b"\x00\x00" for name in imports)
    imported = bytes([len(imports)]) + listed
    sections = b"\x01" + bytes([len(types)]) + types + b"\x02" + bytes([len(imported)]) + imported
    content = _string("filling") + bytes(size)
    length = len(content)
    coded = bytes(
        [length & 127 | 128, length >> 7 & 127 | 128, length >> 14 & 127 | 128, length >> 21]
    )
    return b"\0asm\1\0\0\0" + sections + b"\x00" + coded + content


@pytest.mark.parametrize(
    ("imports", "size", "quick"),
    [
        (("syscall",), 100_000, True),
        (("syscall",), 1_000_000, True),
        (("syscall",), 2_000_000, False),
        (("syscall", "fork"), 100_000, True),
        (("syscall", "fork"), 1_000_000, False),
    ],
)
def test_small_modules_are_not_worth_optimising_wasm_opt_for(
    tmp_path: Path, imports: tuple[str, ...], size: int, quick: bool
) -> None:
    module = tmp_path / "module.wasm"
    module.write_bytes(module_bytes(*imports, size=size))
    command = InstalledWasmOpt(Path("node"), Path("wasm-opt")).command(module)
    assert command == (("node", QUICK, "wasm-opt") if quick else ("node", "wasm-opt"))


def test_it_is_fetched_while_builds_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = tmp_path / "module.wasm"
    module.write_bytes(module_bytes("syscall", size=100_000))
    go_on = threading.Event()

    def fetch(*_: object) -> InstalledWasmOpt:
        assert go_on.wait(30)
        return InstalledWasmOpt(Path("node"), Path("wasm-opt"))

    monkeypatch.setattr("userland.builder.wasm_opt.ensure_wasm_opt", fetch)
    with wasm_opt_meanwhile(Cache(tmp_path), Commands(), print) as coming:
        go_on.set()
        assert coming.command(module) == ("node", QUICK, "wasm-opt")


def test_a_failed_fetch_is_reported_by_the_build_that_needs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fetch(*_: object) -> InstalledWasmOpt:
        raise NoNetwork("wasm-opt could not be fetched", "Check the network.")

    monkeypatch.setattr("userland.builder.wasm_opt.ensure_wasm_opt", fetch)
    with (
        wasm_opt_meanwhile(Cache(tmp_path), Commands(), print) as coming,
        pytest.raises(NoNetwork, match="could not be fetched"),
    ):
        coming.command(tmp_path / "module.wasm")
