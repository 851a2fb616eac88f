/* The two ends of a checkpoint: how a program is stored, and how it is entered again. Linked
 * into programs that are stored; see checkpoint.h. It uses the libc's public names only. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "checkpoint.h"

/* System calls of our own. */
enum { STARTUP_SIZE = 1000, STARTUP_FILL = 1001, CHECKPOINT = 1004 };
enum { ASK = 0, STORE = 1, REST = 2 };

int (*rested_main)(void);

struct startup {
	uint32_t argc, envc;
	char strings[];
};

int checkpoint_wanted(void)
{
	return syscall(CHECKPOINT, ASK) == 1;
}

_Noreturn void checkpoint(void)
{
	syscall(CHECKPOINT, STORE);
	perror("checkpoint");
	_exit(127);
}

int checkpoint_rest(int descriptor)
{
	return syscall(CHECKPOINT, REST, descriptor);
}

static void *pages(size_t size)
{
	void *start = mmap(0, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED) _exit(127);
	return start;
}

static char *point_at(char **list, uint32_t count, char *string)
{
	for (; count; count--) {
		*list++ = string;
		string += strlen(string) + 1;
	}
	*list = 0;
	return string;
}

static void name_program(char *path)
{
	program_invocation_name = path;
	char *slash = strrchr(path, '/');
	program_invocation_short_name = slash ? slash + 1 : path;
}

/* Becomes the module's _start when it is stored. The libc and its constructors have run
 * before the checkpoint; only what the kernel passes to a new program is fetched again. */
__attribute__((__export_name__("_resume")))
void checkpoint_resume(void)
{
	if (rested_main) exit(rested_main());

	long size = syscall(STARTUP_SIZE);
	if (size < (long)sizeof(struct startup)) _exit(127);
	struct startup *startup = pages(size);
	if (syscall(STARTUP_FILL, startup, size) < 0) _exit(127);

	int argc = startup->argc;
	char **argv = pages((startup->argc + startup->envc + 2) * sizeof *argv);
	char **envp = argv + argc + 1;
	point_at(envp, startup->envc, point_at(argv, argc, startup->strings));
	environ = envp;
	if (argc) name_program(argv[0]);
	exit(resumed_main(argc, argv, envp));
}
