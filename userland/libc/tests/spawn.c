/* posix_spawn with file actions and attributes; errors; system and popen. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

extern char **environ;

static void spawn(char *self)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t mask;
	int ends[2], status;
	char line[64] = "";
	pid_t pid;
	CHECK(!pipe2(ends, O_CLOEXEC));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawnattr_init(&attributes);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	posix_spawnattr_setsigmask(&attributes, &mask);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	CHECK(!posix_spawn(&pid, self, &actions, &attributes, (char *[]){ self, "child", 0 }, environ));
	close(ends[1]);
	CHECK(read(ends[0], line, sizeof line) == 8 && !strcmp(line, "blocked\n"));
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);

	CHECK(posix_spawn(&pid, "/nonexistent", 0, 0, (char *[]){ "x", 0 }, environ) == ENOENT);
	CHECK(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
}

static void shell(void)
{
	int status = system("exit 3");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	CHECK(system(0) == 1);

	char line[64];
	FILE *from = popen("echo read this", "r");
	CHECK(from && fgets(line, sizeof line, from) && !strcmp(line, "read this\n"));
	CHECK(!fgets(line, sizeof line, from) && pclose(from) == 0);
	FILE *to = popen("exit 5", "w");
	CHECK(to && WEXITSTATUS(pclose(to)) == 5);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		sigset_t now;
		sigprocmask(SIG_BLOCK, 0, &now);
		puts(sigismember(&now, SIGUSR1) ? "blocked" : "open");
		return 7;
	}
	spawn(argv[0]);
	shell();
	return 0;
}
