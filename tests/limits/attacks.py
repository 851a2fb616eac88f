"""The attacks of a hostile guest and of a hostile client, as one table.

Owns `ATTACKS`. `test_attacks.py` tries each once, `python -m bench.soak` mixes them with honest
work for any length of time, and `python -m tests.limits.attack NAME` tries one by hand. To add an
attack, add a row. Rules: a row names its threat in docs/threat-model.md; an attack runs in a
sandbox with `OPTIONS`, and ends by itself or at its `timeout_ms`; `after` is what the host then
does with what the guest prepared, as a user would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.limits import attack_programs as programs
from tests.limits.host_steps import (
    copy_interleaved,
    export_links,
    export_root,
    list_everything,
    overwrite_sparse,
    read_sparse,
    run_again,
    stopped_python,
    stopped_shell,
)
from wasmsand import Sandbox
from wasmsand.sdk.options import SandboxOptions

MIB: Final = 1024 * 1024
OPTIONS: Final = SandboxOptions(
    timeout_ms=2_000,
    memory_limit_bytes=192 * MIB,
    fs_limit_bytes=64 * MIB,
    max_inodes=20_000,
    max_processes=32,
    max_output_bytes=4 * MIB,
)


@dataclass(frozen=True)
class Attack:
    """One row."""

    name: str
    threat: str
    """Its ID in docs/threat-model.md."""
    shell: str = ""
    """A script for bash."""
    python: str = ""
    """A program for the sandbox's Python."""
    module: str = ""
    """WebAssembly text of a program that the guest brings."""
    after: Callable[[Sandbox], None] | None = None
    """What the host does next; it must return soon, or raise a `SandboxError`."""
    timeout_ms: int = 1_000

    @property
    def command(self) -> str:
        """What the guest runs; `prepare` writes the files for it."""
        if self.shell:
            return self.shell
        return "python3 /tmp/attack.py" if self.python else "/tmp/attack"

    def prepare(self, sandbox: Sandbox) -> None:
        """Write the files that `command` needs."""
        if self.python:
            sandbox.files.write("/tmp/attack.py", self.python)
        if self.module:
            from wasmsand.engine.wasmtime.bindings import wat_to_wasm

            sandbox.files.write("/tmp/attack", wat_to_wasm(self.module))
            sandbox.files.chmod("/tmp/attack", 0o755)


ATTACKS: Final[tuple[Attack, ...]] = (
    # Processes and threads.
    Attack("fork-bomb", "T020", shell=":(){ :|:& };:"),
    Attack("fork-bomb-waits", "T020", shell=":(){ :|:& };: ; wait"),
    Attack("fork-bomb-then-command", "T007", shell=":(){ :|:& };:", after=run_again),
    Attack("sleeping-children", "T020", shell="for i in {1..200}; do sleep 60 & done; wait"),
    Attack("zombies", "T020", shell="while :; do (exit) & done"),
    Attack("thread-bomb", "T021", python=programs.THREADS),
    Attack("threads-then-command", "T021",
           shell="python3 /tmp/attack.py & sleep 0.7", python=programs.THREADS, after=run_again),
    Attack("exec-many-arguments", "T030", python=programs.EXEC_ARGUMENTS),
    Attack("exec-for-ever", "T020", python=programs.EXEC_ITSELF),
    # Time.
    Attack("endless-loop", "T001", shell="while :; do :; done"),
    Attack("many-endless-loops", "T001",
           shell="for i in {1..24}; do while :; do :; done & done; wait"),
    Attack("ignores-signals", "T001", shell="trap '' TERM INT HUP; while :; do :; done"),
    Attack("signal-storm", "T001", shell="trap : USR1; while :; do kill -USR1 $$; done"),
    Attack("interval-timer-storm", "T024", python=programs.TIMER_STORM),
    Attack("timers-re-armed", "T024", python=programs.TIMERS_REARMED),
    Attack("regular-expression", "T001", python=programs.REGULAR_EXPRESSION),
    # Memory.
    Attack("memory-of-bash", "T010", shell="x=x; while :; do x=$x$x; done"),
    Attack("memory-of-python", "T010", python=programs.MEMORY),
    Attack("memory-of-many", "T010", shell=programs.MEMORY_OF_MANY),
    Attack("memory-grown-and-kept", "T010", module=programs.GROW_AND_BLOCK),
    Attack("memory-grown-by-many", "T010", shell=programs.RUN_MANY, module=programs.GROW_AND_BLOCK),
    Attack("tables", "T011", module=programs.TABLES),
    Attack("deep-stack", "T012", module=programs.DEEP_STACK),
    Attack("deep-recursion-of-bash", "T012", shell="f() { f; }; f"),
    # Kernel objects and queued data.
    Attack("epoll-fan-out", "T002", python=programs.EPOLL_FAN_OUT),
    Attack("epoll-chain", "T002", python=programs.EPOLL_CHAIN),
    Attack("epoll-watches", "T022", python=programs.EPOLL_WATCHES),
    Attack("connections-not-accepted", "T023", python=programs.CONNECTIONS),
    Attack("datagrams-not-received", "T023", python=programs.DATAGRAMS),
    Attack("descriptors-in-flight", "T023", python=programs.RIGHTS),
    Attack("full-pipes", "T023", python=programs.PIPES),
    Attack("terminals", "T023", python=programs.TERMINALS),
    Attack("file-locks", "T025", python=programs.LOCKS),
    Attack("poll-many", "T025", python=programs.POLL_MANY),
    # Long transfers.
    Attack("dd-large-blocks", "T030", shell="dd if=/dev/urandom of=/dev/null bs=150M count=100"),
    Attack("many-dd", "T030",
           shell="for i in {1..20}; do dd if=/dev/zero of=/dev/null bs=8M & done; wait"),
    Attack("readv-2G", "T030", python=programs.READV),
    Attack("getrandom", "T030", python=programs.GETRANDOM),
    Attack("sendfile", "T030", python=programs.SENDFILE),
    Attack("copy-file-range", "T030", python=programs.COPY_RANGE),
    # Files.
    Attack("disk-full", "T040", shell="yes > f"),
    Attack("inodes", "T040", shell="for ((i = 0; ; i++)); do : > $i || break; done"),
    Attack("large-directory", "T041", python=programs.LARGE_DIRECTORY, after=list_everything),
    Attack("deep-directories", "T041", python=programs.DEEP_DIRECTORIES, after=list_everything),
    Attack("symlink-maze", "T041", python=programs.SYMLINKS),
    Attack("sparse-overwritten", "T042", shell="truncate -s 1T f; ln f g", after=overwrite_sparse),
    Attack("sparse-read", "T042", shell="truncate -s 1T f", after=read_sparse),
    Attack("sparse-interleaved", "T043", python=programs.INTERLEAVED, after=copy_interleaved),
    Attack("hard-links-exported", "T044", shell=programs.HARD_LINKS, after=export_links),
    Attack("export-of-everything", "T044", shell="true", after=export_root),
    Attack("proc", "T041", shell="while :; do cat /proc/*/* /proc/*/fd/* > /dev/null 2>&1; done"),
    # Output.
    Attack("output-flood", "T050", shell="yes"),
    Attack("error-flood", "T050", shell="yes >&2"),
    Attack("output-of-many", "T050", shell="for i in {1..16}; do yes & done; wait"),
    # Modules.
    Attack("compile-nested-loops", "T060", module=programs.NESTED_LOOPS),
    Attack("compile-many-functions", "T060", module=programs.MANY_FUNCTIONS),
    Attack("compile-again-and-again", "T060", python=programs.COMPILE_AGAIN),
    Attack("module-signal-flag", "T061", module=programs.SIGNAL_FLAG_OUTSIDE),
    # Sessions.
    Attack("stopped-shell", "T006", shell="true", after=stopped_shell),
    Attack("stopped-python", "T006", shell="true", after=stopped_python),
)  # fmt: skip
BY_NAME: Final = {attack.name: attack for attack in ATTACKS}
