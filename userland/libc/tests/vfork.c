/* vfork and exec of this very program, with what a child may do in between. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

extern char **environ;
static char *self;

static int run(const char *argument, int output)
{
	volatile int marker = 1;
	pid_t pid = vfork();
	CHECK(pid >= 0);
	if (!pid) {
		marker = 2;
		if (output >= 0) dup2(output, 1);
		signal(SIGINT, SIG_IGN);
		char *arguments[] = { self, (char *)argument, 0 };
		execve(self, arguments, environ);
		_exit(127);
	}
	CHECK(marker == 2);
	return pid;
}

static int status_of(pid_t pid)
{
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc > 1) {
		printf("%s ran\n", argv[1]);
		return signal(SIGINT, SIG_DFL) == SIG_IGN ? 42 : 1;
	}

	CHECK(status_of(run("direct", open("/dev/null", O_WRONLY))) == 42);
	CHECK(signal(SIGINT, SIG_DFL) == SIG_DFL);

	for (int i = 0; i < 20; i++) {
		int ends[2];
		char line[32] = "";
		CHECK(!pipe2(ends, O_CLOEXEC));
		pid_t pid = run("piped", ends[1]);
		close(ends[1]);
		CHECK(read(ends[0], line, sizeof line - 1) == 10 && !strcmp(line, "piped ran\n"));
		CHECK(close(ends[0]) == 0 && status_of(pid) == 42);
	}

	pid_t pid = vfork();
	if (!pid) {
		CHECK(execve("/nonexistent", argv, environ) == -1 && errno == ENOENT);
		CHECK(vfork() == -1 && errno == EAGAIN);
		_exit(99);
	}
	CHECK(status_of(pid) == 99);
	return 0;
}
