/* The only clone there is: posix_spawn's, which runs until it executes a program
 * or exits. See src/process/wasm32/vfork.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
#include "pthread_impl.h"
#include "wasm_guest.h"

int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	if (flags != (CLONE_VM|CLONE_VFORK|SIGCHLD)) return -ENOSYS;
	jmp_buf frame;
	if (setjmp(frame)) return __embryo_pid;
	long r = __embryo_begin(frame);
	if (r) return r;
	_exit(function(argument));
}
