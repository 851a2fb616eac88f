/* fork: two memories from one, pipes between them, statuses, deep stacks, atfork. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

static int value = 1, prepared, in_parent, in_child;

static void prepare(void) { prepared++; }
static void parent(void) { in_parent++; }
static void child(void) { in_child++; }

static void memories_are_separate(void)
{
	int ends[2], on_stack = 5, status;
	char *on_heap = strdup("before"), buffer[32];
	CHECK(!pipe(ends));
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		value = 2;
		on_stack++;
		strcpy(on_heap, "child");
		CHECK(write(ends[1], on_heap, 6) == 6);
		_exit(value + on_stack);
	}
	CHECK(close(ends[1]) == 0 && read(ends[0], buffer, 32) == 6 && !strcmp(buffer, "child"));
	CHECK(read(ends[0], buffer, 32) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 8);
	CHECK(value == 1 && on_stack == 5 && !strcmp(on_heap, "before"));
	CHECK(wait(&status) == -1 && errno == ECHILD);
}

static int depth_reached(int levels)
{
	volatile char frame[200];
	frame[levels % 200] = 1;
	if (levels) return depth_reached(levels - 1) + frame[levels % 200];
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid) return 0;
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 33);
	return 0;
}

static void killed_child(void)
{
	int status;
	pid_t pid = fork();
	if (!pid) for (;;) pause();
	CHECK(!kill(pid, SIGTERM) && waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

int main(void)
{
	pthread_atfork(prepare, parent, child);
	memories_are_separate();
	CHECK(prepared == 1 && in_parent == 1 && in_child == 0);
	killed_child();

	pid_t self = getpid();
	CHECK(depth_reached(15000) == 15000);
	if (getpid() != self) _exit(in_child == 1 ? 33 : 1);

	/* Grandchildren, many in a row. */
	for (int i = 0; i < 50; i++) {
		int status;
		pid_t pid = fork();
		if (!pid) _exit(fork() ? wait(&status), WEXITSTATUS(status) : i);
		CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == i);
	}
	return 0;
}
