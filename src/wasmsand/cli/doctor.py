"""`wasmsand doctor`: checks the installation and says how to fix it.

Rules: it repairs only what it can repair without asking (it compiles modules that are not
compiled yet, and says so); each check prints one line; the first failed check ends the command
with status 1 and advice.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import wasmsand
from wasmsand.cli.checkout import repository_root
from wasmsand.compiled_kernel import chosen

if TYPE_CHECKING:
    from rich.console import Console

    from wasmsand.machine.image_directory import ProgramFile


_EXTRAS = {
    "serve": ("msgspec", "prometheus_client", "starlette", "uvicorn"),
    "mcp": ("mcp",),
    "network": ("cryptography", "h11", "idna"),
}
"""Extras of the package, and their modules."""


class Unhealthy(Exception):
    """A check failed; the message says what to do."""


HELP = "check the installation; compile modules that are not compiled yet"
DESCRIPTION = (
    "Check the installation: the engine, the programs of the sandbox, a first "
    "command, and the barriers of process isolation. Compile the modules that are not compiled "
    "for this machine yet, so that later commands do not have to wait."
)
EXAMPLES = """\
examples:
  wasmsand doctor                             exit status 0 if everything works
  wasmsand doctor && wasmsand run 'echo ready'
"""


def add_options(_parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""


def execute(_arguments: argparse.Namespace) -> int:
    """Run every check; return 0 if all of them pass."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    try:
        for line in _checks(console):
            console.print(f"[green]ok[/]    {escape(line)}", soft_wrap=True)
    except Unhealthy as problem:
        console.print(f"[red]wrong[/] {escape(str(problem))}", soft_wrap=True)
        return 1
    return 0


def _checks(console: Console) -> Iterator[str]:
    yield f"wasmsand {wasmsand.__version__}, Python {platform.python_version()} on {sys.platform}"
    yield f"engine: wasmtime {_engine_version()}"
    programs = _programs()
    yield "programs: " + ", ".join(f"{program.name} {program.version}" for program in programs)
    yield _cache()
    yield _compiled(programs, console)
    yield f"kernel: {chosen().form}"
    yield _packages()
    yield "optional: " + "; ".join(_optional_parts())
    yield _v86_machine()
    yield _workers()
    yield _first_command()
    yield _second_barrier()


def _packages() -> str:
    """The Python packages of the image; native ones with their versions."""
    from wasmsand.machine.packages.offered import registry

    found = registry().all()
    native = [f"{package.key} {package.version}" for package in found if package.is_native]
    if native:
        return f"Python packages: {len(found)} in the image; native ones: {', '.join(native)}"
    return (
        f"Python packages: {len(found)} in the image; native ones (numpy, pandas, ...) are not "
        "installed: pip install wasmsand-packages, or `make packages` in a source checkout"
    )


def _optional_parts() -> Iterator[str]:
    """Which optional parts are installed, and how to install the others."""
    for extra, modules in _EXTRAS.items():
        if all(find_spec(module) is not None for module in modules):
            yield f"wasmsand {extra} is installed"
        else:
            yield f"wasmsand {extra} is not installed: pip install 'wasmsand[{extra}]'"


def _v86_machine() -> str:
    """Whether the machine of v86 mode is built. It is optional; a damaged one is an error."""
    from wasmsand.sdk.errors import ImageMissingError
    from wasmsand.v86.image import find_image

    try:
        image = find_image()
    except ImageMissingError as missing:
        return f"v86 mode: {missing}"
    for name, digest in image.files.items():
        try:
            _check_hash(image.directory / name, digest)
        except Unhealthy:
            raise Unhealthy(
                f"the v86 machine in {image.directory} is damaged ({name}); remove the directory "
                "and run `wasmsand build v86`"
            ) from None
    versions = ", ".join(f"{name} {version}" for name, version in image.versions.items())
    return f"v86 mode: {versions}"


def _engine_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wasmtime")
    except PackageNotFoundError:
        raise Unhealthy("the package wasmtime is not installed: pip install wasmtime") from None


def _programs() -> tuple[ProgramFile, ...]:
    """The image's programs, each checked against its hash."""
    from wasmsand.machine.image import image_programs
    from wasmsand.machine.image_directory import ImageMissing

    try:
        programs = image_programs()
    except ImageMissing as missing:
        raise Unhealthy(str(missing)) from None
    for program in programs:
        _check_hash(program.path, program.sha256)
        if program.prepared is not None:
            _check_hash(program.prepared.memory.path, program.prepared.memory.sha256)
    return programs


def _check_hash(path: Path, expected: str) -> None:
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise Unhealthy(f"{path}: {error.strerror}: {_advice()}") from None
    if digest != expected:
        raise Unhealthy(f"{path} does not match the hash in its manifest: {_advice()}")


def _compiled(programs: Sequence[ProgramFile], console: Console) -> str:
    """Compile the modules that are not compiled yet."""
    from rich.markup import escape

    from wasmsand.cli.warming import is_ready, make_ready, only_process
    from wasmsand.engine import default_engine

    engine, total = default_engine(), len(programs)
    missing = [program for program in programs if not is_ready(engine, program)]
    came = sum(engine.comes_compiled(program.sha256) for program in programs)
    source = f"; {came} came compiled with the package" if came else ""
    if not missing:
        return f"compiled programs: all {total} are ready{source}"
    to_compile = [each for each in missing if not engine.comes_compiled(each.sha256)]
    for reason in engine.why_not_compiled():
        console.print(f"note  compiled programs of the package are not used: {escape(reason)}")
    started = time.monotonic()
    with console.status("") as status, only_process(wait=True):
        make_ready(
            engine,
            missing,
            began=lambda program: status.update(f"compiling {program.name} for this machine"),
        )
    left = [program.name for program in programs if not is_ready(engine, program)]
    if left:
        return (
            f"compiled programs: {total - len(left)} of {total} are ready{source}. Each process "
            f"has to prepare the others ({', '.join(left)}), because the cache cannot be written: "
            "set WASMSAND_CACHE to a directory that only you can write to, and run `wasmsand warm`"
        )
    seconds = time.monotonic() - started
    now = f"{len(to_compile)} were compiled now" if to_compile else "their files were checked now"
    return f"compiled programs: all {total} are ready; {now} in {seconds:.1f} s{source}"


def _cache() -> str:
    """Where compiled programs are kept."""
    from wasmsand.engine.choosing import host_cache

    return f"cache: {host_cache()} (set WASMSAND_CACHE to choose another directory)"


def _first_command() -> str:
    with wasmsand.Sandbox() as sandbox:
        result = sandbox.commands.run("echo hello | tr a-z A-Z")
    if (result.stdout, result.exit_code) != ("HELLO\n", 0):
        raise Unhealthy(f"the first command returned {result}: please report this")
    return f"first command: {result.execution_time_ms:.1f} ms"


def _workers() -> str:
    """How many processes `wasmsand serve` has."""
    from wasmsand.cli.serve import default_workers

    count = default_workers()
    if count == 1:
        return "workers of `wasmsand serve`: one process for everything"
    return f"workers of `wasmsand serve`: {count}, behind the same barriers as isolation='process'"


def _second_barrier() -> str:
    """The barriers that confine the process of a sandbox with `isolation='process'`."""
    from wasmsand.rpc.backend import open_process_backend
    from wasmsand.sdk.errors import SandboxError

    try:
        backend = open_process_backend(wasmsand.SandboxOptions())
    except SandboxError as error:
        raise Unhealthy(f"cannot create a sandbox with isolation='process': {error}") from None
    backend.close()
    return f"active barriers of isolation='process': {', '.join(backend.barriers) or 'none'}"


def _advice() -> str:
    if repository_root() is not None:
        return "run `make build` (or `wasmsand build`)"
    return "reinstall the package: pip install --force-reinstall wasmsand"
