/* Handlers: raise, masks, pending, siginfo, one-shot, ignored, sigsuspend. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
#include "check.h"

static volatile int count, last;
static volatile pid_t sender;

static void counting(int sig)
{
	count++;
	last = sig;
	errno = 77;
}

static void informed(int sig, siginfo_t *info, void *context)
{
	CHECK(info->si_signo == sig && context);
	sender = info->si_pid;
	count++;
}

static void install(int sig, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	CHECK(!sigaction(sig, &action, 0));
}

static void raising(void)
{
	install(SIGUSR1, counting, 0);
	errno = 0;
	CHECK(!raise(SIGUSR1) && count == 1 && last == SIGUSR1 && errno == 0);
	CHECK(!kill(getpid(), SIGUSR1) && count == 2);
	struct sigaction old;
	CHECK(!sigaction(SIGUSR1, 0, &old) && old.sa_handler == counting);
}

static void blocking(void)
{
	sigset_t set, old, pending;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	count = 0;
	CHECK(!sigprocmask(SIG_BLOCK, &set, &old) && !sigismember(&old, SIGUSR1));
	raise(SIGUSR1);
	raise(SIGUSR1);
	CHECK(count == 0 && !sigpending(&pending) && sigismember(&pending, SIGUSR1));
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, 0) && count == 1);

	sigprocmask(SIG_BLOCK, &set, &old);
	raise(SIGUSR1);
	CHECK(count == 1 && sigsuspend(&old) == -1 && errno == EINTR && count == 2);
	sigset_t now;
	CHECK(!sigprocmask(SIG_BLOCK, 0, &now) && sigismember(&now, SIGUSR1));
	raise(SIGUSR1);
	CHECK(sigtimedwait(&set, 0, &(struct timespec){ .tv_sec = 1 }) == SIGUSR1 && count == 2);
	sigprocmask(SIG_SETMASK, &old, 0);
}

static void nested_handler(int sig)
{
	/* A second signal of the same kind has to wait; another kind does not. */
	static int inside;
	CHECK(!inside);
	inside = 1;
	if (count == 0) {
		count++;
		raise(sig);
		int before = last;
		raise(SIGUSR1);
		CHECK(before != SIGUSR1 && last == SIGUSR1);
	}
	inside = 0;
}

int main(void)
{
	raising();
	blocking();

	struct sigaction action = { .sa_sigaction = informed, .sa_flags = SA_SIGINFO };
	count = 0;
	CHECK(!sigaction(SIGUSR2, &action, 0) && !kill(getpid(), SIGUSR2));
	CHECK(count == 1 && sender == getpid());

	install(SIGTERM, counting, SA_RESETHAND);
	raise(SIGTERM);
	struct sigaction old;
	CHECK(!sigaction(SIGTERM, 0, &old) && old.sa_handler == SIG_DFL);

	signal(SIGINT, SIG_IGN);
	CHECK(!raise(SIGINT) && signal(SIGINT, SIG_DFL) == SIG_IGN);

	count = last = 0;
	install(SIGHUP, nested_handler, 0);
	raise(SIGHUP);
	CHECK(sigaction(SIGKILL, &action, 0) == -1 && errno == EINVAL);
	return 0;
}
