"""Programs that cause a fault: what their signal handlers can do, and how they end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.compiling import compiled
from wasmsand import Sandbox

_PROGRAM = r"""
#include <signal.h>
#include <string.h>
#include <unistd.h>

static char *kind, *reaction;
static int at_fault(void);

static void caught(int signo, siginfo_t *info, void *context)
{
	char text[] = "caught 00 code 0\n";
	text[7] += signo / 10;
	text[8] += signo % 10;
	text[15] += info->si_code;
	write(1, text, sizeof text - 1);
	if (!strcmp(reaction, "exit")) _exit(7);
	if (!strcmp(reaction, "fault")) at_fault();
	if (!strcmp(reaction, "raise")) {
		signal(signo, SIG_DFL);
		raise(signo);
	}
}

static int small_frames(volatile int n) { return n < 0 ? 0 : small_frames(n + 1) + n; }

static int large_frames(int n)
{
	volatile char frame[10000];
	frame[n % 10000] = n;
	return n < 0 ? 0 : large_frames(n + 1) + frame[n % 10000];
}

static int at_fault(void)
{
	volatile int many = 100, zero = 0;
	if (!strcmp(kind, "address")) return *(volatile char *)-1;
	if (!strcmp(kind, "division")) return many / zero;
	if (!strcmp(kind, "calls")) return small_frames(0);
	return large_frames(0);
}

int main(int argc, char **argv)
{
	kind = argv[1];
	reaction = argv[2];
	struct sigaction action = { .sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	if (!strcmp(reaction, "nodefer")) action.sa_flags |= SA_NODEFER, reaction = "fault";
	sigaction(SIGSEGV, &action, 0);
	sigaction(SIGFPE, &action, 0);
	if (!strcmp(reaction, "block")) {
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, 0);
	}
	return at_fault();
}
"""


@pytest.fixture(scope="module")
def faulty(sysroot: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("faulty")
    source = folder / "faulty.c"
    source.write_text(_PROGRAM, encoding="utf-8")
    return compiled([source], sysroot, folder)


def run(faulty: bytes, kind: str, reaction: str) -> tuple[str, int]:
    with Sandbox() as sandbox:
        sandbox.files.write("faulty", faulty)
        sandbox.commands.run("chmod +x faulty")
        result = sandbox.commands.run(["./faulty", kind, reaction])
        return result.stdout, result.exit_code


@pytest.mark.parametrize(
    ("kind", "signo"), [("address", 11), ("division", 8), ("calls", 11), ("frames", 11)]
)
def test_a_handler_of_the_program_s_own_fault_runs(faulty: bytes, kind: str, signo: int) -> None:
    assert run(faulty, kind, "exit") == (f"caught {signo:02} code 1\n", 7)


@pytest.mark.parametrize("reaction", ["return", "raise", "fault", "nodefer"])
def test_a_handler_that_does_not_end_the_program_leaves_that_to_the_signal(
    faulty: bytes, reaction: str
) -> None:
    assert run(faulty, "address", reaction) == ("caught 11 code 1\n", 128 + 11)


def test_a_fault_whose_signal_is_blocked_ends_the_program(faulty: bytes) -> None:
    assert run(faulty, "division", "block") == ("", 128 + 8)
