"""Runs a script in a sandbox of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tests.differential.outcome import TIME_LIMIT, Left, Outcome, environment, left
from wasmsand.kernel.flags import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.vfs import ROOT, Node
from wasmsand.machine import CommandRequest, Machine


def run_sandboxed(script: str, directory: str) -> Outcome:
    """Run a script in a new directory at this path."""
    machine = Machine()
    try:
        machine.files.mkdir(directory)
        completed = machine.run(
            CommandRequest(
                ("bash", "-c", script),
                environment(directory),
                directory,
                timeout_seconds=TIME_LIMIT,
            )
        )
        with machine.lock:
            namespace = machine.kernel.namespace
            start = namespace.resolve(ROOT, namespace.root, os.fsencode(directory))
            files = dict(_files(machine, start, ""))
        return Outcome(completed.exit_code, completed.stdout, completed.stderr, files)
    finally:
        machine.close()


def _files(machine: Machine, folder: Node, prefix: str) -> Iterator[tuple[str, Left]]:
    namespace = machine.kernel.namespace
    for entry in namespace.readdir(folder, 0, 1 << 20):
        if entry.name in (b".", b".."):
            continue
        node = namespace.resolve(ROOT, folder, entry.name, follow=False)
        status = namespace.stat(node)
        kind = status.mode & S_IFMT
        content = b""
        if kind == S_IFREG:
            content = namespace.read(node, 0, status.size)
        elif kind == S_IFLNK:
            content = namespace.readlink(node)
        path = prefix + os.fsdecode(entry.name)
        yield path, left(status.mode, status.nlink, content)
        if kind == S_IFDIR:
            yield from _files(machine, node, path + "/")
