"""`wasmsand shell`: an interactive bash on a pseudo-terminal of the sandbox.

Rules: while the shell runs, the host's terminal is in raw mode and every byte passes through
unchanged in both directions, so that the guest handles editing, job control and Ctrl-C; the
terminal's settings are always restored. A signal handler only wakes the loop and takes no lock.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from wasmsand.cli import options, run, saved
from wasmsand.cli.port_option import add_port_option, open_ports

if TYPE_CHECKING:
    from wasmsand.sdk.backend import Backend, BackendTerminal
    from wasmsand.sdk.sandbox import Sandbox

_SHELL = ("/bin/bash",)
SCRIPT_COMMAND = [*_SHELL, "-s"]
"""For `run`, if there is no terminal: bash reads its script from standard input."""
_CHUNK = 65536


HELP = "open an interactive bash in a new sandbox"
DESCRIPTION = (
    "Open an interactive bash in a new sandbox. The sandbox's files are lost when "
    "bash ends, unless --save names a file for them. If standard input is not a terminal, bash "
    "runs the script that it reads there."
)
EXAMPLES = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    options.add_sandbox_options(parser)
    options.add_copy_options(parser)
    add_port_option(parser)
    saved.add_file_options(parser)
    parser.set_defaults(command=SCRIPT_COMMAND, timeout=None)
    parser.set_defaults(connect=None, sandbox=None, keep=False)


def execute(arguments: argparse.Namespace) -> int:
    """Run the shell and return its exit status."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return run.execute(arguments)
    from wasmsand.sdk.client_programs import backend_of

    made_from = options.sandbox_options(arguments)
    with options.failures(), saved.local_sandbox(arguments, made_from) as sandbox:
        options.copy_in(sandbox, arguments.file)
        open_ports(sandbox, arguments.port, newline="\r\n")  # the terminal is in raw mode
        status = _interactive(backend_of(sandbox), sandbox)
        options.copy_out(sandbox, arguments.out)
    return status


def _interactive(backend: Backend, sandbox: Sandbox) -> int:
    """Run bash on a pseudo-terminal that is connected to ours."""
    from wasmsand.sdk.backend import CommandRequest

    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    environ = {**sandbox.env.all(), "TERM": os.environ.get("TERM", "dumb")}
    request = CommandRequest(_SHELL, environ, backend.cwd)
    terminal = backend.open_terminal(request, rows, columns)
    with _raw_mode(sys.stdin.fileno()):
        _pump(terminal, sys.stdin.fileno(), sys.stdout.fileno())
    return terminal.wait() or 0


def _pump(terminal: BackendTerminal, keyboard: int, screen: int) -> None:
    """Move bytes both ways until the guest's side ends."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    ended = threading.Event()

    def show_output() -> None:
        try:
            while data := terminal.read(_CHUNK):
                _write_all(screen, data)
        finally:
            ended.set()
            _wake(wake_write)

    output = threading.Thread(target=show_output, name="wasmsand-screen", daemon=True)
    try:
        with _window_changes_wake(wake_write):
            output.start()
            _feed_keyboard(terminal, keyboard, screen, wake_read, ended)
            output.join()
    finally:
        os.close(wake_write)
        os.close(wake_read)


def _feed_keyboard(
    terminal: BackendTerminal, keyboard: int, screen: int, wake_read: int, ended: threading.Event
) -> None:
    sources = [keyboard, wake_read]
    while not ended.is_set():
        ready, _, _ = select.select(sources, [], [])
        if wake_read in ready:
            os.read(wake_read, _CHUNK)
            columns, rows = os.get_terminal_size(screen)
            terminal.resize(rows, columns)
        if keyboard in ready:
            data = os.read(keyboard, _CHUNK)
            if data:
                terminal.write(data)
            else:
                sources.remove(keyboard)


def _wake(wake_write: int) -> None:
    # A full pipe means that the loop will wake anyway.
    with suppress(BlockingIOError):
        os.write(wake_write, b"!")


@contextmanager
def _window_changes_wake(wake_write: int) -> Iterator[None]:
    """Wake the loop whenever the size of the host's window changes."""
    before = signal.signal(signal.SIGWINCH, lambda _signal, _frame: _wake(wake_write))
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


@contextmanager
def _raw_mode(descriptor: int) -> Iterator[None]:
    """Put the terminal into raw mode, and restore it afterwards."""
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
