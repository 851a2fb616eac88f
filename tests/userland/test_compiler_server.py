"""The compiler that is loaded once: the same work as the real one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from userland.builder.commands import Commands
from userland.builder.compiler_server import fast_compiler
from userland.builder.toolchain import LLVM

CLANG = f"clang-{LLVM}"
PROGRAM = "#include <stdio.h>\nint main(void) { puts(NAME); return 3; }\n"

pytestmark = pytest.mark.skipif(shutil.which(CLANG) is None, reason="needs the toolchain")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    """A directory with a program, while the clang in PATH is the client of a server."""
    (tmp_path / "program.c").write_text(PROGRAM)
    with fast_compiler(Commands()) as folder:
        assert folder is not None
        assert shutil.which(CLANG) == str(folder / CLANG)
        yield tmp_path
    assert not folder.exists()


def compile_in(
    folder: Path, *arguments: str, name: str = CLANG
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [name, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def real_compiler(served: str = CLANG) -> str:
    path = os.environ["PATH"].split(os.pathsep, 1)[1]
    return str(shutil.which(served, path=path))


def test_objects_are_the_same_bytes(served: Path) -> None:
    options = ["--target=wasm32-unknown-unknown", "-O2", "-nostdlibinc", "-c", "code.c", "-o"]
    (served / "code.c").write_text("double f(double x, int n) { while (n--) x *= x; return x; }")
    assert compile_in(served, *options, "fast.o").returncode == 0
    assert compile_in(served, *options, "plain.o", name=real_compiler()).returncode == 0
    assert (served / "fast.o").read_bytes() == (served / "plain.o").read_bytes()


MODULE = ["--target=wasm32-unknown-unknown", "-O2", "-nostdlib", "code.c", "-Wl,--no-entry"]


def test_modules_are_linked_to_the_same_bytes(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (served / "code.c").write_text("double f(double x, int n) { while (n--) x *= x; return x; }")
    made = []
    # Clang looks for the linker in PATH.
    for path in (os.environ["PATH"], os.environ["PATH"].split(os.pathsep, 1)[1]):
        monkeypatch.setenv("PATH", path)
        # The module contains the name of the file.
        assert compile_in(served, *MODULE, "-Wl,--export=f", "-o", "code.wasm").returncode == 0
        made.append((served / "code.wasm").read_bytes())
    assert made[0] == made[1]


def test_errors_of_the_linker_are_reported(served: Path) -> None:
    (served / "code.c").write_text("int g(void); int f(void) { return g(); }")
    done = compile_in(served, *MODULE, "-Wl,--export=f", "-o", "code.wasm")
    assert done.returncode == 1
    assert "undefined symbol: g" in done.stderr
    assert not (served / "code.wasm").exists()


@pytest.mark.parametrize("name", [f"llvm-ar-{LLVM}", f"llvm-ranlib-{LLVM}"])
def test_the_archiver_does_what_its_name_says(served: Path, name: str) -> None:
    for folder, program in (("fast", name), ("plain", real_compiler(name))):
        (served / folder).mkdir()
        (served / folder / "member").write_text("text")
        archiver = [real_compiler(f"llvm-ar-{LLVM}"), "rcSD", "a.a", "member"]
        subprocess.run(archiver, cwd=served / folder, check=True)
        arguments = ["-D", "a.a"] if "ranlib" in name else ["rcsD", "a.a", "member"]
        assert compile_in(served / folder, *arguments, name=program).returncode == 0
    assert (served / "fast/a.a").read_bytes() == (served / "plain/a.a").read_bytes()


def test_a_program_is_compiled_and_linked(served: Path) -> None:
    done = compile_in(served, '-DNAME="it runs"', "program.c", "-o", "program")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    ran = subprocess.run([served / "program"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (3, "it runs\n")


def test_an_error_has_the_status_and_the_message_of_the_real_compiler(served: Path) -> None:
    fast = compile_in(served, "-c", "program.c")
    plain = compile_in(served, "-c", "program.c", name=real_compiler())
    assert fast.returncode == plain.returncode == 1
    assert fast.stderr == plain.stderr
    assert "use of undeclared identifier 'NAME'" in fast.stderr


def test_the_name_selects_the_language(served: Path) -> None:
    (served / "code.h").write_text("")
    printed = [
        compile_in(served, "-###", "-c", "program.c", name=name).stderr
        for name in (f"clang++-{LLVM}", real_compiler(f"clang++-{LLVM}"))
    ]
    assert '"-x" "c++"' in printed[0]
    assert printed[0] == printed[1]


def test_variables_and_standard_input_are_those_of_the_client(served: Path) -> None:
    (served / "include").mkdir()
    (served / "include/only_here.h").write_text("int found;\n")
    done = subprocess.run(
        [CLANG, "-E", "-P", "-x", "c", "-"],
        input="#include <only_here.h>\n",
        env={**os.environ, "CPATH": str(served / "include")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("int found;", "")


def test_many_compilations_at_once_are_kept_apart(served: Path) -> None:
    def compiled(number: int) -> str:
        options = ["-E", "-P", f"-DNUMBER={number}", "-x", "c", "many.c"]
        return compile_in(served, *options).stdout.strip()

    (served / "many.c").write_text("int value = NUMBER;\n")
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(compiled, range(64))) == [f"int value = {n};" for n in range(64)]


def test_without_its_server_the_client_runs_the_real_compiler(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    with fast_compiler(Commands()) as folder:
        assert folder is not None
        (folder / f"{CLANG}.socket").unlink()
        done = compile_in(tmp_path, '-DNAME="x"', "-c", "program.c")
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / "program.o").is_file()


def test_stopped_commands_end_the_server(tmp_path: Path) -> None:
    commands = Commands()
    (tmp_path / "program.c").write_text(PROGRAM)
    with fast_compiler(commands) as folder:
        assert folder is not None
        commands.stop()
        # It must not wait for an answer that never comes.
        done = compile_in(tmp_path, '-DNAME="x"', "-c", "program.c")
        assert done.returncode in (0, -signal.SIGTERM)
