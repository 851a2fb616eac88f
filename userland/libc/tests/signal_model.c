/* Masks and actions change at random and signals are raised; a model says which handlers must
 * have run and what is pending, also in forked children and in programs that are executed. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

enum { DEFAULT, IGNORED, HANDLED, ONCE };

/* All have no effect by default, or are given a handler before they are raised. */
static const int signals[] = { SIGUSR1, SIGURG, SIGWINCH, SIGTERM, SIGHUP };
enum { SIGNALS = sizeof signals / sizeof *signals };

static struct {
	int action, pending, blocked, ran;
} model[SIGNALS];
static volatile int ran[SIGNALS];
static uint32_t seed;

static unsigned random_below(unsigned limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 16) % limit;
}

static int index_of(int signo)
{
	int i = 0;
	while (signals[i] != signo) i++;
	return i;
}

static void handler(int signo)
{
	int i = index_of(signo);
	sigset_t now;
	CHECK(!sigprocmask(SIG_BLOCK, 0, &now) && sigismember(&now, signo));
	CHECK(!model[i].blocked);
	ran[i]++;
}

static int harmless(int i)
{
	return signals[i] == SIGURG || signals[i] == SIGWINCH;
}

static int is_ignored(int i)
{
	return model[i].action == IGNORED || (model[i].action == DEFAULT && harmless(i));
}

/* What happens to a signal that has become pending, or that can now be taken. */
static void settle(int i)
{
	if (!model[i].pending || model[i].blocked) return;
	model[i].pending = 0;
	if (model[i].action == HANDLED || model[i].action == ONCE) model[i].ran++;
	if (model[i].action == ONCE) model[i].action = DEFAULT;
}

static void set_action(int i, int action)
{
	struct sigaction new = { .sa_handler = SIG_DFL }, old;
	if (action == IGNORED) new.sa_handler = SIG_IGN;
	if (action == HANDLED || action == ONCE) new.sa_handler = handler;
	if (action == ONCE) new.sa_flags = SA_RESETHAND;
	CHECK(!sigaction(signals[i], &new, &old));
	CHECK((old.sa_handler == handler) == (model[i].action == HANDLED || model[i].action == ONCE));
	CHECK((old.sa_handler == SIG_IGN) == (model[i].action == IGNORED));
	model[i].action = action;
	if (is_ignored(i)) model[i].pending = 0;
}

static void raise_signal(int i)
{
	CHECK(!raise(signals[i]));
	if (is_ignored(i) && !model[i].blocked) return;
	model[i].pending = 1;
	settle(i);
}

static void change_mask(void)
{
	sigset_t set, old;
	sigemptyset(&set);
	int chosen[SIGNALS], how = random_below(3);
	for (int i = 0; i < SIGNALS; i++)
		if ((chosen[i] = random_below(2))) sigaddset(&set, signals[i]);
	sigaddset(&set, SIGKILL);
	int before[SIGNALS];
	for (int i = 0; i < SIGNALS; i++) {
		before[i] = model[i].blocked;
		if (how == SIG_BLOCK) model[i].blocked |= chosen[i];
		else if (how == SIG_UNBLOCK) model[i].blocked &= !chosen[i];
		else model[i].blocked = chosen[i];
	}
	CHECK(!sigprocmask(how, &set, &old));
	for (int i = 0; i < SIGNALS; i++) {
		CHECK(sigismember(&old, signals[i]) == before[i]);
		settle(i);
	}
	CHECK(!sigismember(&old, SIGKILL));
}

static void compare(void)
{
	sigset_t now, pending;
	CHECK(!sigprocmask(SIG_SETMASK, 0, &now) && !sigpending(&pending));
	for (int i = 0; i < SIGNALS; i++) {
		CHECK(ran[i] == model[i].ran);
		CHECK(sigismember(&now, signals[i]) == model[i].blocked);
		CHECK(sigismember(&pending, signals[i]) == model[i].pending);
	}
	CHECK(!sigismember(&now, SIGKILL));
}

static void in_child(void)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(getpid() != getppid());
		for (int i = 0; i < SIGNALS; i++) model[i].pending = 0;
		compare();
		change_mask();
		compare();
		_exit(0);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void in_program(char *path)
{
	/* Blocked and ignored signals stay so; handlers do not. */
	char ignored[SIGNALS + 1] = { 0 }, blocked[SIGNALS + 1] = { 0 };
	for (int i = 0; i < SIGNALS; i++) {
		ignored[i] = model[i].action == IGNORED ? '1' : '0';
		blocked[i] = model[i].blocked ? '1' : '0';
	}
	pid_t pid = random_below(2) ? fork() : vfork();
	CHECK(pid >= 0);
	if (!pid) {
		execl(path, path, ignored, blocked, (char *)0);
		_exit(1);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static int executed(const char *ignored, const char *blocked)
{
	sigset_t now;
	CHECK(!sigprocmask(SIG_SETMASK, 0, &now));
	for (int i = 0; i < SIGNALS; i++) {
		struct sigaction action;
		CHECK(!sigaction(signals[i], 0, &action));
		CHECK(action.sa_handler == (ignored[i] == '1' ? SIG_IGN : SIG_DFL));
		CHECK(sigismember(&now, signals[i]) == (blocked[i] == '1'));
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3) return executed(argv[1], argv[2]);
	for (seed = 1; seed < 8; seed++) {
		uint32_t first = seed;
		for (int i = 0; i < SIGNALS; i++) {
			model[i].blocked = 0;
			settle(i);
		}
		sigset_t none;
		sigemptyset(&none);
		CHECK(!sigprocmask(SIG_SETMASK, &none, 0));
		for (int i = 0; i < SIGNALS; i++) set_action(i, HANDLED);
		for (int step = 0; step < 600; step++) {
			int i = random_below(SIGNALS);
			unsigned what = random_below(60);
			if (what < 20) raise_signal(i);
			else if (what < 40) change_mask();
			/* Those that end the process are never left to their default. */
			else if (what < 57) set_action(i, harmless(i) ? random_below(4) : IGNORED + random_below(2));
			else if (what < 59) in_child();
			else in_program(argv[0]);
			compare();
		}
		seed = first;
	}
	puts("ok");
	return 0;
}
