/* A process sends signals to one that blocks and unblocks them while it computes: no handler runs
 * while its signal is blocked, and no signal is lost, whether it has a handler or ends the process. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

enum { ROUNDS = 300, DEATHS = 40 };

static volatile int blocked, received, answers;
static sigset_t set;

static void handler(int signo)
{
	CHECK(!blocked);
	received++;
	CHECK(write(answers, "x", 1) == 1);
}

static volatile unsigned sink;

static void compute(unsigned turns)
{
	for (unsigned i = 0; i < turns; i++) sink += i;
}

static void toggle(void)
{
	for (unsigned i = 0;; i++) {
		sigprocmask(SIG_BLOCK, &set, 0);
		blocked = 1;
		int before = received;
		compute(i % 50000);
		CHECK(received == before);
		blocked = 0;
		sigprocmask(SIG_UNBLOCK, &set, 0);
		compute(i % 7 * 1000);
	}
}

static pid_t start(int pipe_end)
{
	answers = pipe_end;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid) return pid;
	toggle();
	_exit(0);
}

int main(void)
{
	int ends[2], status;
	char byte;
	CHECK(!pipe(ends));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);

	struct sigaction action = { .sa_handler = handler };
	CHECK(!sigaction(SIGUSR1, &action, 0));
	pid_t pid = start(ends[1]);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(!kill(pid, SIGUSR1));
		CHECK(read(ends[0], &byte, 1) == 1);
	}
	CHECK(!kill(pid, SIGTERM) && waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);

	for (int i = 0; i < DEATHS; i++) {
		pid = start(ends[1]);
		if (i % 3) usleep(i * 100);
		CHECK(!kill(pid, SIGTERM) && waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	}
	puts("ok");
	return 0;
}
