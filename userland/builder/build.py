"""Building one recipe: unpack, patch, configure, make, finish.

Owns how sources are compiled. Rules: a build sees a small fixed environment and no
path of the machine gets into its output; everything printed goes to the recipe's log;
the result is a directory in the cache's work area, which the caller publishes or
throws away. This file's content is part of every recipe's key.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from userland.builder.cache import LICENCES, Cache, Entry
from userland.builder.commands import Commands
from userland.builder.errors import BadModule, DiskFull, StepFailed
from userland.builder.finish import finish_program
from userland.builder.jobserver import JobServer
from userland.builder.keys import shared_answers
from userland.builder.progress import Progress
from userland.builder.recipe import Recipe
from userland.builder.sources import fetch, unpack
from userland.builder.toolchain import Toolchain
from userland.builder.wasm_opt import WasmOpt

# What configure is told it builds for; config.sub knows it, and `uname -m` agrees.
_HOST = "wasm32-unknown-linux-musl"

_SYSROOT = "sysroot"
_LICENCE_NAMES = ("COPYING", "COPYRIGHT", "LICENCE", "LICENSE")
_TAIL_LINES = 25


@dataclass(frozen=True)
class Workshop:
    """What all builds of one run share."""

    cache: Cache
    commands: Commands
    toolchain: Toolchain
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
        return self.shop.cache.log_file(self.recipe.name, self.key)

    def run(self, work: Path) -> Path:
        """Build in the empty directory `work`; returns the directory of the outputs."""
        outputs = work / "out"
        outputs.mkdir()
        with self.log_path.open("wb") as log:
            with self._step("fetch"):
                tarball = fetch(self.recipe.source, self.shop.cache, self.shop.commands)
            with self._step("unpack"):
                tree = unpack(tarball, work / "src", self.shop.commands, log)
                for patch in self.recipe.build.patches:
                    self._command("patch", ["patch", "-p1", "-i", patch], tree, log)
                _keep_licences(tree, outputs / LICENCES)
            if self.recipe.build.script is not None:
                with self._step("make"):
                    self._script(tree, outputs / _SYSROOT, log)
            else:
                self._autotools(tree, work, log)
                self._finish(tree, outputs, log)
        return outputs

    # Steps of the two build systems.

    def _script(self, tree: Path, outputs: Path, log: IO[bytes]) -> None:
        assert self.recipe.build.script is not None
        argv = [self.recipe.build.script, tree, outputs]
        self._command("make", argv, tree, log, extra={"JOBS": str(self.shop.jobs)})

    def _autotools(self, tree: Path, work: Path, log: IO[bytes]) -> None:
        build = self.recipe.build
        with self._step("configure"):
            answers = work / "config.site"
            answers.write_text(self._answers(), encoding="utf-8")
            arguments = [
                f"--host={_HOST}",
                f"--build={platform.machine()}-linux-gnu",
                "--prefix=/usr",
                *build.configure,
            ]
            extra = {"CONFIG_SITE": str(answers), **self._compiler(tree)}
            self._command("configure", ["sh", "./configure", *arguments], tree, log, extra)
        with self._step("make"):
            extra = {"MAKEFLAGS": self.shop.jobserver.make_flags}
            self._check_signatures(self._command("make", ["make", *build.make], tree, log, extra))

    def _finish(self, tree: Path, outputs: Path, log: IO[bytes]) -> None:
        with self._step("wasm-opt"):
            wasm_opt = self.shop.wasm_opt.command

            def run(arguments: Sequence[str]) -> str:
                return self._command("wasm-opt", [*wasm_opt, *arguments], tree, log)

            for program in self.recipe.programs:
                finish_program(program, tree / program.binary, outputs / program.file, run)

    # Their surroundings.

    def _compiler(self, tree: Path) -> dict[str, str]:
        """The variables that tell configure how to compile."""
        sysroot = self.dependencies["musl"].folder / _SYSROOT
        # Paths of this machine must not reach debug data, assert() or __FILE__.
        source_name = f"/usr/src/{self.recipe.name}-{self.recipe.version}"
        maps = [f"-ffile-prefix-map={tree}={source_name}", f"-ffile-prefix-map={sysroot}=/usr"]
        return {
            "CC": str(sysroot / "bin/wasm-cc"),
            "CFLAGS": " ".join(["-O2", *maps, *self.recipe.build.cflags]),
            "LDFLAGS": " ".join(self.recipe.build.ldflags),
            "CC_FOR_BUILD": self.shop.toolchain.native_compiler,
            **self.shop.toolchain.archive_tools,
        }

    def _answers(self) -> str:
        """The configure cache: what holds for every program, then what the recipe adds."""
        shared = [file.read_text(encoding="utf-8") for file in shared_answers(self.recipe)]
        own = [f"{name}={value}\n" for name, value in self.recipe.build.answers]
        return "".join(shared + own)

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


def _keep_licences(tree: Path, target: Path) -> None:
    """Keep the texts that must go with the programs wherever they go."""
    target.mkdir()
    for file in sorted(tree.iterdir()):
        if file.is_file() and file.name.upper().startswith(_LICENCE_NAMES):
            shutil.copyfile(file, target / file.name)
