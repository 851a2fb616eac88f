"""The answers that configure scripts are given are true: nothing else would notice a wrong one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from conformance.supplies import RECIPES, ROOT
from scripts.configure_answers import answered_versions
from userland.builder.keys import OWN_ANSWERS, shared_answers
from userland.builder.recipe import load_recipes

pytestmark = pytest.mark.userland

SITE = RECIPES / "configure-answers.site"
MACHINE = ROOT / "userland/builder/machine_answers.sh"
COMPILER = "clang-22"


def answers(text: str, kind: str, value: str) -> list[str]:
    """The names X of all answers `ac_cv_KIND_X` with this value."""
    lines = re.findall(rf"^ac_cv_{kind}_(\w+)=(?:\$\{{\w+=)?{value}\}}?$", text, re.MULTILINE)
    return sorted(lines)


def link(compiler: str | Path, work: Path, functions: list[str]) -> str:
    """What the linker says of a program that refers to all these functions."""
    source = work / "program.c"
    declared = "".join(f"char {name}();\n" for name in functions)
    referred = ", ".join(f"(void *){name}" for name in functions)
    source.write_text(
        f"{declared}void *all[] = {{ {referred} }};\nint main(void) {{ return !all; }}\n"
    )
    options = ["-fno-builtin", "-w", "-std=gnu89", "-o", str(work / "program")]
    done = subprocess.run(
        [str(compiler), *options, str(source)], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stderr


def test_functions_that_the_libc_is_said_to_lack_are_not_there(sysroot: Path) -> None:
    absent = answers(SITE.read_text("utf-8"), "func", "no")
    assert len(absent) > 50
    printed = subprocess.run(
        ["llvm-nm-22", "--defined-only", "--extern-only", str(sysroot / "lib/libc.a")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    defined = {line.split()[-1] for line in printed.splitlines() if line.strip()}
    assert not defined.intersection(absent)


def test_headers_that_the_libc_is_said_to_lack_are_not_there(sysroot: Path) -> None:
    absent = answers(SITE.read_text("utf-8"), "header", "no")
    assert len(absent) > 50
    root = sysroot / "include"
    present = {re.sub(r"\W", "_", str(file.relative_to(root))) for file in root.rglob("*.h")}
    assert not present.intersection(absent)


def test_types_are_as_the_answers_say(sysroot: Path, tmp_path: Path) -> None:
    text = SITE.read_text("utf-8")
    headers = "sys/types sys/socket sys/stat stddef stdint stdio wchar signal time unistd pthread"
    headers += " netdb iconv netinet/in spawn sys/resource"
    included = "".join(f"#include <{name}.h>\n" for name in headers.split())
    wanted = [name for name in answers(text, "type", "yes") if not name.startswith(("struct", "u"))]
    known = [name for name in wanted if re.fullmatch(r"(?!volatile)\w+_t", name)]
    assert len(known) > 15
    source = tmp_path / "types.c"
    source.write_text(included + "".join(f"{name} *of_{name};\n" for name in known))
    done = subprocess.run(
        [str(sysroot / "bin/wasm-cc"), "-D_GNU_SOURCE", "-c", str(source), "-o", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    unknown = re.findall(r"unknown type name '(\w+)'", done.stderr)
    # Types of headers that only some programs include.
    assert set(unknown) <= {"cpu_set_t", "loff_t", "quad_t", "sem_t", "posix_spawnattr_t"}


def test_the_machine_has_every_function_that_native_builds_are_told_of(tmp_path: Path) -> None:
    printed = subprocess.run(
        ["sh", str(MACHINE)], capture_output=True, text=True, check=True
    ).stdout
    present = answers(printed, "func", "yes")
    assert {"fork", "memcpy", "openat", "time"} <= set(present)
    assert "main" not in present
    assert link(COMPILER, tmp_path, present) == ""


def test_the_machine_has_every_header_that_native_builds_are_told_of(tmp_path: Path) -> None:
    script = subprocess.run(["sh", str(MACHINE)], capture_output=True, text=True, check=True).stdout
    present = set(answers(script, "header", "yes"))
    assert {"stdio_h", "sys_stat_h"} <= present
    named = re.findall(r"[\w/]+", MACHINE.read_text("utf-8").split("headers='")[1].split("'")[0])
    for header in named:
        if re.sub(r"\W", "_", header) + "_h" not in present:
            continue
        source = tmp_path / "header.c"
        source.write_text(f"#include <{header}.h>\nint main(void) {{ return 0; }}\n")
        done = subprocess.run(
            [COMPILER, "-fsyntax-only", str(source)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (header, done.stderr)


def test_own_answers_were_found_out_with_the_present_versions() -> None:
    recipes = load_recipes(RECIPES, ROOT)
    files = [(name, each.folder / OWN_ANSWERS) for name, each in recipes.items()]
    for name, file in [(name, file) for name, file in files if file.exists()]:
        first = file.read_text("utf-8").splitlines()[0]
        found = first.partition("found out with: ")[2]
        assert found == answered_versions(recipes[name], recipes), (
            f"run python scripts/configure_answers.py {name}"
        )


def test_own_answers_are_given_to_their_recipe_only() -> None:
    recipes = load_recipes(RECIPES, ROOT)
    assert [file.name for file in shared_answers(recipes["python"])][-1] == OWN_ANSWERS
    assert OWN_ANSWERS not in [file.name for file in shared_answers(recipes["xz"])]
