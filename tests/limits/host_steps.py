"""What the host does with what a hostile guest prepared: the second half of some attacks.

Rules: these are plain SDK calls, as a user makes them; each returns, or raises a `SandboxError`,
within seconds.
"""

from __future__ import annotations

from contextlib import suppress

from wasmsand import Sandbox, SandboxError

_EXPORT_BYTES = 256 * 1024 * 1024
"""Several times what the sandbox can hold."""


def run_again(sandbox: Sandbox) -> None:
    """Run the next commands; the first may be refused, but not all."""
    for _ in range(3):
        with suppress(SandboxError):
            if sandbox.commands.run("echo alive", timeout_ms=3_000).stdout == "alive\n":
                return
    raise AssertionError("three commands in a row did not run")


def overwrite_sparse(sandbox: Sandbox) -> None:
    """Write to a large file of holes that has two links."""
    with suppress(SandboxError):
        sandbox.files.write("f", "")
    with suppress(SandboxError):
        sandbox.files.append("g", "x")


def read_sparse(sandbox: Sandbox) -> None:
    """Read, copy and export a large file of holes."""
    with suppress(SandboxError):
        sandbox.files.read("f")
    with suppress(SandboxError):
        sandbox.files.copy("f", "copy")
    _export(sandbox, "f")


def copy_interleaved(sandbox: Sandbox) -> None:
    """Copy a file with many holes."""
    with suppress(SandboxError):
        sandbox.files.copy("f", "copy")


def export_links(sandbox: Sandbox) -> None:
    """Export one file with many names."""
    _export(sandbox, ".")


def export_root(sandbox: Sandbox) -> None:
    """Export a whole sandbox, with devices and /proc; stop after a while."""
    _export(sandbox, "/")


def list_everything(sandbox: Sandbox) -> None:
    """Walk, export and remove the tree."""
    with suppress(SandboxError):
        sandbox.files.list(".", recursive=True)
    _export(sandbox, ".")
    with suppress(SandboxError):
        sandbox.files.rm("d", recursive=True, missing_ok=True)


def _export(sandbox: Sandbox, path: str) -> None:
    size = 0
    with suppress(SandboxError):
        for piece in sandbox.files.export_tar(path):
            size += len(piece)
            if size > _EXPORT_BYTES:
                return


def stopped_shell(sandbox: Sandbox) -> None:
    """Send a long command to a shell that was stopped between two calls."""
    with suppress(SandboxError), sandbox.shell() as shell:
        shell.run("(sleep 0.2; kill -STOP $$) &")
        sandbox.commands.run("sleep 0.4")
        shell.run(": " + "x" * 200_000, timeout_ms=1_000)


def stopped_python(sandbox: Sandbox) -> None:
    """The same for a Python session."""
    with suppress(SandboxError), sandbox.python() as session:
        session.run(
            "import os, subprocess\n"
            "subprocess.Popen(['bash', '-c', f'sleep 0.2; kill -STOP {os.getpid()}'])"
        )
        sandbox.commands.run("sleep 0.4")
        session.run("x = '" + "x" * 200_000 + "'", timeout_ms=1_000)
