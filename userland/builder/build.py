"""Building one recipe: unpack, patch, configure, make, finish.

Owns how sources are compiled. Rules: a build sees a small fixed environment and no
path of the machine gets into its output; everything printed goes to the recipe's log;
the result is a directory in the cache's work area, which the caller publishes or
throws away. What differs between building for the sandbox and for the building machine
is the target's. This file's content is part of every recipe's key.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import IO

from userland.builder.cache import LICENCES, Cache, Entry
from userland.builder.commands import Commands
from userland.builder.errors import BadModule, BuildError, DiskFull, StepFailed
from userland.builder.jobserver import JobServer
from userland.builder.progress import Progress
from userland.builder.recipe import ImageFile, Recipe
from userland.builder.sources import fetch, unpack
from userland.builder.target import FILES, SYSROOT, Target
from userland.builder.wasm_opt import WasmOpt

_STAGE = "stage"
_LICENCE_NAMES = ("COPYING", "COPYRIGHT", "LICENCE", "LICENSE")
_TAIL_LINES = 25


@dataclass(frozen=True)
class Workshop:
    """What all builds of one run share."""

    cache: Cache
    commands: Commands
    target: Target
    wasm_opt: WasmOpt
    jobs: int
    jobserver: JobServer
    progress: Progress


@dataclass
class RecipeBuild:
    """One build of one recipe."""

    recipe: Recipe
    key: str
    dependencies: Mapping[str, Entry]
    shop: Workshop
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def log_path(self) -> Path:
        return self.shop.cache.log_file(self.shop.target.cache_prefix + self.recipe.name, self.key)

    def run(self, work: Path) -> Path:
        """Build in the empty directory `work`; returns the directory of the outputs."""
        outputs = work / "out"
        outputs.mkdir()
        with self.log_path.open("wb") as log:
            tree = self._unpack(work, log)
            _keep_licences(self.recipe, tree, outputs / LICENCES)
            self._prepare(tree, work, log)
            self._compile(tree, outputs, log)
            with self._step("finish"):
                self._keep(tree, outputs, log)
        return outputs

    def configured(self, work: Path) -> Path:
        """Unpack and configure in the empty directory `work`, no more; returns the tree."""
        with self.log_path.open("wb") as log:
            tree = self._unpack(work, log)
            self._prepare(tree, work, log)
        return tree

    # The steps.

    def _unpack(self, work: Path, log: IO[bytes]) -> Path:
        with self._step("fetch"):
            tarball = fetch(self.recipe.source, self.shop.cache, self.shop.commands)
        with self._step("unpack"):
            tree = unpack(tarball, work / "src", self.shop.commands, log)
            for patch in self.recipe.build.patches:
                self._command("patch", ["patch", "-p1", "-i", patch], tree, log)
        return tree

    def _prepare(self, tree: Path, work: Path, log: IO[bytes]) -> None:
        variables = self._variables(tree)
        with self._step("configure"):
            for line in self.recipe.build.before:
                self._command("before", ["sh", "-c", line], tree, log, variables)
            if self.recipe.build.system == "autotools":
                self._configure(tree, work, variables, log)

    def _compile(self, tree: Path, outputs: Path, log: IO[bytes]) -> None:
        build = self.recipe.build
        variables = self._variables(tree)
        with self._step("make"):
            if build.script is not None:
                argv = [build.script, tree, outputs / SYSROOT]
                jobs = {"JOBS": str(self.shop.jobs)}
                self._command("make", argv, tree, log, {**variables, **jobs})
            else:
                printed = self._make(build.make, tree, variables, log)
                self._check_signatures(printed)
            for line in build.after:
                self._command("after", ["sh", "-c", line], tree, log, variables)
            if build.install:
                stage = f"DESTDIR={tree / _STAGE}"
                self._make((stage, *build.install), tree, variables, log)

    def _configure(
        self, tree: Path, work: Path, variables: Mapping[str, str], log: IO[bytes]
    ) -> None:
        answers = work / "config.site"
        answers.write_text(
            self.shop.target.answers(self.recipe, self.dependencies), encoding="utf-8"
        )
        arguments = [
            *self.shop.target.configure(self.recipe),
            "--prefix=/usr",
            *(_expanded(argument, variables) for argument in self.recipe.build.configure),
        ]
        extra = {**variables, "CONFIG_SITE": str(answers)}
        self._command("configure", ["sh", "./configure", *arguments], tree, log, extra)

    def _make(
        self, arguments: Sequence[str], tree: Path, variables: Mapping[str, str], log: IO[bytes]
    ) -> str:
        argv = ["make", *(_expanded(argument, variables) for argument in arguments)]
        extra = {**variables, "MAKEFLAGS": self.shop.jobserver.make_flags}
        return self._command("make", argv, tree, log, extra)

    def _keep(self, tree: Path, outputs: Path, log: IO[bytes]) -> None:
        """Take the outputs out of the tree."""

        def wasm_opt(arguments: Sequence[str]) -> str:
            command = self.shop.wasm_opt.command(Path(arguments[0]))
            return self._command("wasm-opt", [*command, *arguments], tree, log)

        for program in self.recipe.programs:
            self.shop.target.finish(program, tree / program.binary, outputs, wasm_opt)
        for file in self.recipe.files:
            _keep_file(self.recipe, file, tree / file.origin, outputs / FILES / file.path[1:])
        for link in self.recipe.links:
            place = outputs / FILES / link.path[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(link.to)
        if self.recipe.build.library is not None:
            _keep_library(self.recipe, tree / self.recipe.build.library, outputs / SYSROOT)

    # Their surroundings.

    def _variables(self, tree: Path) -> dict[str, str]:
        """The environment that all steps see, and what arguments may name."""
        compiler = self.shop.target.compiler(self.recipe, tree, self.dependencies)
        # Libraries are those of other recipes, never those of the building machine.
        fixed = {"PKG_CONFIG": "false", "TREE": str(tree)}
        return {**compiler, **fixed, **dict(self.recipe.build.variables)}

    def _environment(self, home: Path) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "LC_ALL": "C",
            "TZ": "UTC",
            "SOURCE_DATE_EPOCH": "1",
        }

    # Running and telling.

    @contextmanager
    def _step(self, step: str) -> Iterator[None]:
        self.shop.progress.step(self.recipe.name, step)
        began = time.monotonic()
        yield
        self.seconds[step] = time.monotonic() - began

    def _command(
        self,
        step: str,
        argv: Sequence[str | Path],
        cwd: Path,
        log: IO[bytes],
        extra: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command of a step; returns what it printed."""
        env = {**self._environment(cwd), **(extra or {})}
        shown = " ".join(str(part) for part in argv)
        log.write(f"\n### {step}: {shown}\n".encode())
        log.flush()
        began = self.log_path.stat().st_size
        status = self.shop.commands.run(
            argv, output=log, cwd=cwd, env=env, pass_fds=self.shop.jobserver.descriptors
        )
        printed = self._logged(began)
        if status == 0:
            return printed
        if "No space left on device" in printed:
            raise DiskFull(self.shop.cache.root)
        tail = "\n".join(f"  {line}" for line in printed.splitlines()[-_TAIL_LINES:])
        reason = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
        raise StepFailed(self.recipe.name, step, reason, self.log_path, tail)

    def _logged(self, began: int) -> str:
        with self.log_path.open("rb") as log:
            log.seek(began)
            return log.read().decode(errors="replace")

    def _check_signatures(self, printed: str) -> None:
        """The linker only warns when a call and its function differ; such a call traps."""
        mismatches = [
            line for line in printed.splitlines() if "function signature mismatch" in line
        ]
        if mismatches:
            raise BadModule(
                f"{self.recipe.name}: calls do not fit their functions:\n  "
                + "\n  ".join(mismatches),
                "A declaration is wrong or missing, often because of a configure answer. "
                f"The whole log: {self.log_path}",
            )


def _expanded(argument: str, variables: Mapping[str, str]) -> str:
    """The argument with $NAME replaced; what make itself must expand stays."""
    return Template(argument).safe_substitute(variables)


def _keep_licences(recipe: Recipe, tree: Path, target: Path) -> None:
    """Keep the texts that must go with the programs wherever they go."""
    target.mkdir()
    texts = [tree / name for name in recipe.licence_files] or [
        file
        for file in sorted(tree.iterdir())
        if file.is_file() and file.name.upper().startswith(_LICENCE_NAMES)
    ]
    if not texts or not all(text.is_file() for text in texts):
        raise BuildError(
            f"{recipe.name}: the source has no licence text where it should be",
            "Name the files that hold it in licence_files of the recipe.",
        )
    for text in texts:
        shutil.copyfile(text, target / text.name)


def _keep_file(recipe: Recipe, file: ImageFile, origin: Path, place: Path) -> None:
    if not origin.exists():
        raise BuildError(
            f"{recipe.name}: the build left no {file.origin}", "Check `files` in the recipe."
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    if origin.is_dir():
        shutil.copytree(origin, place, symlinks=True, dirs_exist_ok=True)
        files = [path for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
    else:
        shutil.copyfile(origin, place)
        shutil.copymode(origin, place)
        files = [place]
    for path in files:
        usual = 0o755 if os.access(path, os.X_OK) else 0o644
        path.chmod(usual if file.mode is None else file.mode)


def _keep_library(recipe: Recipe, origin: Path, place: Path) -> None:
    """Headers and archives; nothing that would be found and run."""
    if not (origin / "include").is_dir() or not list((origin / "lib").glob("*.a")):
        raise BuildError(
            f"{recipe.name}: {recipe.build.library} has no include/ or no lib/*.a",
            "Check `install` and `library` in the recipe.",
        )
    shutil.copytree(origin / "include", place / "include", symlinks=True)
    (place / "lib").mkdir()
    for archive in sorted((origin / "lib").glob("*.a")):
        shutil.copyfile(archive, place / "lib" / archive.name)
