/* The two clones there are: posix_spawn's, which runs until it executes a program or
 * exits (see src/process/wasm32/vfork.c), and that of pthread_create.
 *
 * A thread is a second instance of this program on the same memory. The host sets its
 * stack pointer to `stack`, where the way in is noted, and calls __thread_start. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "pthread_impl.h"
#include "wasm_guest.h"

struct way_in {
	int (*function)(void *);
	void *argument;
	struct __pthread *thread;
	int unused;
};

/* Made by the linker, if there are such sections. */
#define SECTION_EDGE extern __attribute__((__weak__)) char
SECTION_EDGE __start_libc_thread[], __stop_libc_thread[];
SECTION_EDGE __start_thread_local[], __stop_thread_local[];

/* For the host: what it exchanges when another thread takes over. */
char *const __thread_locals[4] = {
	__start_libc_thread, __stop_libc_thread,
	__start_thread_local, __stop_thread_local,
};

static char *first_values;

void __thread_locals_remember(void)
{
	size_t size = __stop_thread_local - __start_thread_local;
	if (!size) return;
	long r = __memory_map(size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0, 0);
	if (r < 0 && r > -4096) _Exit(127);
	first_values = memcpy((void *)r, __start_thread_local, size);
}

void __thread_start(struct way_in *way)
{
	memset(__start_libc_thread, 0, __stop_libc_thread - __start_libc_thread);
	if (first_values)
		memcpy(__start_thread_local, first_values, __stop_thread_local - __start_thread_local);
	__wasm_thread = way->thread;
	_exit(way->function(way->argument));
}

static int spawn(int (*function)(void *), void *argument)
{
	jmp_buf frame;
	if (setjmp(frame)) return __embryo_pid;
	long r = __embryo_begin(frame);
	if (r) return r;
	_exit(function(argument));
}

int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	if (flags == (CLONE_VM|CLONE_VFORK|SIGCHLD)) return spawn(function, argument);
	if (!(flags & CLONE_THREAD)) return -ENOSYS;

	va_list more;
	va_start(more, argument);
	int *parent_tid = va_arg(more, int *);
	struct __pthread *thread = va_arg(more, struct __pthread *);
	volatile int *child_tid = va_arg(more, volatile int *);
	va_end(more);

	/* The first thread has not told the host yet what to clear when it ends. */
	if (__pthread_self() == &__wasm_main_thread)
		__syscall(SYS_set_tid_address, &__thread_list_lock);
	struct way_in *way = (void *)(((uintptr_t)stack & -16) - sizeof *way);
	*way = (struct way_in){ function, argument, thread };
	return __syscall(SYS_clone, flags, way, parent_tid, thread, child_tid);
}
