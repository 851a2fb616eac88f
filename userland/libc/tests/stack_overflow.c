/* Endless recursion ends the program by SIGSEGV; its parent goes on. */
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include "check.h"

extern char **environ;

static int endless(int n)
{
	volatile char frame[1000];
	frame[n % 1000] = n;
	return n < 0 ? 0 : endless(n + 1) + frame[n % 1000];
}

int main(int argc, char **argv)
{
	if (argc > 1) return endless(0);
	pid_t pid;
	int status;
	CHECK(!posix_spawn(&pid, argv[0], 0, 0, (char *[]){ argv[0], "x", 0 }, environ));
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	return 0;
}
