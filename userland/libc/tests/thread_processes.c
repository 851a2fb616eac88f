/* Threads and processes: children made by threads, programs executed by them, the two ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

extern char **environ;

static void *make_children(void *argument)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid;
		int status;
		char *words[] = { "true", 0 };
		CHECK(!posix_spawnp(&pid, "true", 0, 0, words, environ));
		CHECK(waitpid(pid, &status, 0) == pid && !status);
		pid = vfork();
		if (!pid) _exit(5);
		CHECK(pid > 0);
		CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5);
	}
	return 0;
}

static void *wait_for_ever(void *argument)
{
	for (;;) pause();
}

static void *leave_process(void *argument)
{
	usleep(2000);
	exit(21);
}

static void *execute(void *argument)
{
	usleep(2000);
	execlp("sh", "sh", "-c", "exit 22", (char *)0);
	return 0;
}

static void *end_last(void *argument)
{
	usleep(5000);
	return 0;
}

static void start(void *(*work)(void *))
{
	pthread_t thread;
	CHECK(!pthread_create(&thread, 0, work, 0));
}

/* In a process of its own: this program again, with the name of what it is to do. */
static int outcome(const char *name)
{
	pid_t pid;
	int status;
	char *words[] = { "/proc/self/exe", (char *)name, 0 };
	CHECK(!posix_spawn(&pid, "/proc/self/exe", 0, 0, words, environ));
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void act(const char *name)
{
	start(wait_for_ever);
	if (!strcmp(name, "exit")) start(leave_process);
	if (!strcmp(name, "exec")) start(execute);
	if (!strcmp(name, "return")) exit(23);
	wait_for_ever(0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "last")) {
		start(end_last);
		pthread_exit(0);
	}
	if (argc > 1) act(argv[1]);

	pthread_t thread[4];
	for (int i = 0; i < 4; i++) CHECK(!pthread_create(thread + i, 0, make_children, 0));
	for (int i = 0; i < 4; i++) CHECK(!pthread_join(thread[i], 0));
	CHECK(outcome("exit") == 21);
	CHECK(outcome("exec") == 22);
	CHECK(outcome("return") == 23);
	CHECK(outcome("last") == 0);
	return 0;
}
