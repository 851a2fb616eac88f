"""Extension modules of Python packages, made ready to be linked into one interpreter.

Nothing is loaded at run time here, so an extension module is a relocatable object instead of a
shared one. Hundreds of them go into one program, and their symbols must not meet: many packages
have a `_utils`, many bundle the same C library in different versions, and inline functions of C++
from different headers would be merged in silence. So each module is linked by itself with its own
archives (`link_module`), and then every symbol that it defines is made local but its entry point,
which gets a name that no other module has (`isolated`).

Owns the rewriting of the symbol table and the table of built-in modules. Rules: only the "linking"
section of an object is rewritten, code and relocations are not touched; symbols that a module does
not define stay as they are, so that the libc, libc++, BLAS and Python's own functions are shared;
the same input gives the same bytes.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from userland.builder.errors import BadModule
from userland.builder.wasm_module import MAGIC, Reader, encoded_number

ENTRY_PREFIX = "PyInit_"
"""The entry point of the module `a.b` is `PyInit_b`, and `PyInit_a.b` when it is isolated."""
SUFFIX = ".so"
"""How the files of extension modules end where build systems leave them."""
_LINKING = "linking"
_LINKING_VERSION = 2
_COMDAT_INFO, _SYMBOL_TABLE = 7, 8
_FUNCTION, _DATA, _GLOBAL, _SECTION, _TAG, _TABLE = range(6)
_WEAK, _LOCAL, _HIDDEN, _UNDEFINED, _EXPORTED, _EXPLICIT_NAME = 1, 2, 4, 0x10, 0x20, 0x40
_MODULE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


# Linking.


def link_module(arguments: Sequence[str], linker: str, tree: Path) -> None:
    """Do what a compiler driver is asked to by `-shared`: make one object of the inputs.

    Archives in the build's tree are the package's own and go into the object. Libraries from
    elsewhere (`-l`, archives outside the tree) are left for the link of the whole interpreter, so
    that it holds them once.
    """
    output, inputs = _linker_inputs(arguments, tree)
    subprocess.run([linker, "-r", "--fatal-warnings", "-o", output, *inputs], check=True)


def _linker_inputs(arguments: Sequence[str], tree: Path) -> tuple[str, list[str]]:
    output, inputs = "a.out", []
    rest = iter(arguments)
    for argument in rest:
        if argument == "-o":
            output = next(rest)
        elif argument in ("-Wl,--whole-archive", "-Wl,--no-whole-archive"):
            inputs.append(argument.removeprefix("-Wl,"))
        elif argument.endswith((".o", ".a")) and not argument.startswith("-"):
            if Path(argument).resolve().is_relative_to(tree.resolve()):
                inputs.append(argument)
        elif argument.startswith("@"):
            raise BadModule(f"cannot read the response file {argument[1:]}")
    return output, inputs


# Isolating.


@dataclass(frozen=True)
class _Symbol:
    kind: int
    flags: int
    name: str | None
    """None for a section, and for an undefined symbol that is named by its import."""
    place: bytes
    """Where it is, as encoded in the object."""

    @property
    def defined(self) -> bool:
        return not self.flags & _UNDEFINED and self.kind != _SECTION


def defined_symbols(data: bytes) -> set[str]:
    """The names of all symbols that other objects could refer to."""
    return {
        symbol.name
        for kind, body in _subsections(_linking_section(data))
        if kind == _SYMBOL_TABLE
        for symbol in _symbols(body)
        if symbol.defined and symbol.name is not None and not symbol.flags & _LOCAL
    }


def isolated(data: bytes, module: str) -> bytes:
    """The object of the extension module with this dotted name, with its entry point as the only
    symbol that other objects can refer to."""
    entry = ENTRY_PREFIX + module.rpartition(".")[2]
    if entry not in defined_symbols(data):
        raise BadModule(f"the object of {module} does not define {entry}")
    subsections = []
    for kind, body in _subsections(_linking_section(data)):
        if kind == _COMDAT_INFO:
            # Groups are for objects that share definitions, which no object does now.
            continue
        content = body.rest()
        if kind == _SYMBOL_TABLE:
            symbols = [_isolated_symbol(symbol, entry, module) for symbol in _symbols(body)]
            content = encoded_number(len(symbols)) + b"".join(map(_encoded, symbols))
        subsections.append(bytes([kind]) + _sized(content))
    linking = encoded_number(_LINKING_VERSION) + b"".join(subsections)
    return MAGIC + b"".join(
        bytes([kind]) + _sized(_sized(name.encode()) + linking if name == _LINKING else content)
        for kind, name, content in _sections(data)
    )


def _isolated_symbol(symbol: _Symbol, entry: str, module: str) -> _Symbol:
    if not symbol.defined:
        return symbol
    flags = symbol.flags & ~(_WEAK | _LOCAL | _HIDDEN | _EXPORTED)
    if symbol.name == entry and not symbol.flags & _LOCAL:
        return _Symbol(symbol.kind, flags, ENTRY_PREFIX + module, symbol.place)
    return _Symbol(symbol.kind, flags | _LOCAL, symbol.name, symbol.place)


def _sections(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Number, name (of a custom section), and whole content of each section."""
    if not data.startswith(MAGIC):
        raise BadModule("not a WebAssembly object")
    reader = Reader(data, len(MAGIC), len(data))
    while not reader.done:
        kind, body = reader.section()
        content = body.rest()
        yield kind, body.name() if kind == 0 else "", content


def _linking_section(data: bytes) -> Reader:
    for _, name, content in _sections(data):
        if name == _LINKING:
            reader = Reader(content, 0, len(content))
            reader.name()
            if reader.number() != _LINKING_VERSION:
                raise BadModule("the object is of another version of the format")
            return reader
    raise BadModule("not a relocatable object")


def _subsections(reader: Reader) -> Iterator[tuple[int, Reader]]:
    while not reader.done:
        yield reader.section()


def _symbols(body: Reader) -> Iterator[_Symbol]:
    for _ in range(body.number()):
        kind, flags = body.byte(), body.number()
        name, place = None, b""
        if kind in (_FUNCTION, _GLOBAL, _TAG, _TABLE):
            place = encoded_number(body.number())
            if not flags & _UNDEFINED or flags & _EXPLICIT_NAME:
                name = body.name()
        elif kind == _DATA:
            name = body.name()
            if not flags & _UNDEFINED:
                place = b"".join(encoded_number(body.number()) for _ in range(3))
        elif kind == _SECTION:
            place = encoded_number(body.number())
        else:
            raise BadModule(f"unknown kind of symbol: {kind}")
        yield _Symbol(kind, flags, name, place)


def _encoded(symbol: _Symbol) -> bytes:
    head = bytes([symbol.kind]) + encoded_number(symbol.flags)
    name = b"" if symbol.name is None else _sized(symbol.name.encode())
    return head + (name + symbol.place if symbol.kind == _DATA else symbol.place + name)


def _sized(content: bytes) -> bytes:
    return encoded_number(len(content)) + content


# Packages.


def take_modules(installed: Path, objects: Path) -> list[str]:
    """Move the extension modules out of a tree of installed packages.

    Each becomes `MODULE.o` in `objects`, isolated. Returns their dotted names, sorted.
    """
    objects.mkdir(parents=True, exist_ok=True)
    names = []
    for file in sorted(installed.rglob(f"*{SUFFIX}")):
        parts = file.relative_to(installed).parts
        name = ".".join([*parts[:-1], parts[-1].partition(".")[0]])
        (objects / f"{name}.o").write_bytes(isolated(file.read_bytes(), name))
        file.unlink()
        names.append(name)
    return sorted(names)


def module_table(names: Iterable[str]) -> str:
    """C source that makes these modules built-in ones, before `main` runs.

    A module that is made in a single phase knows only the last part of its name. The loader of
    shared objects tells such a module the whole name, and so does each entry of this table.
    """
    names = sorted(names)
    for name in names:
        if not _MODULE_NAME.fullmatch(name):
            raise BadModule(f"no module can be called {name!r}")
    lines = ['#include "Python.h"', ""]
    lines += ["const char *_PyImport_SwapPackageContext(const char *);", ""]
    for number, name in enumerate(names):
        lines += [
            f'extern PyObject *init_{number}(void) __asm__("{ENTRY_PREFIX}{name}");',
            f"static PyObject *start_{number}(void)",
            "{",
            f'\tconst char *before = _PyImport_SwapPackageContext("{name}");',
            f"\tPyObject *module = init_{number}();",
            "\t_PyImport_SwapPackageContext(before);",
            "\treturn module;",
            "}",
        ]
    lines += ["", "static struct _inittab modules[] = {"]
    lines += [f'\t{{"{name}", start_{number}}},' for number, name in enumerate(names)]
    lines += [
        "\t{0, 0},",
        "};",
        "",
        "__attribute__((constructor)) static void add_modules(void)",
        "{",
        "\tif (PyImport_ExtendInittab(modules) < 0) __builtin_trap();",
        "}",
        "",
    ]
    return "\n".join(lines)
