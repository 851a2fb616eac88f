/* fork by Asyncify: the host unwinds this program's frames into the buffer given
 * here, copies the memory into a second instance, and rewinds both. A program
 * that links this file must be processed by wasm-opt --asyncify.
 *
 * The buffer must hold the locals of all frames, and running over its end is a
 * trap. How much that is cannot be known; but the depth of the C stack can. In
 * bash the frames took 0.35 to 0.5 times that depth, so a fixed part and three
 * times the depth is ample. What is not reached is neither touched nor copied. */
#include <sys/mman.h>
#include <unistd.h>
#include "libc.h"
#include "pthread_impl.h"
#include "syscall.h"
#include "wasm_guest.h"

__attribute__((__import_module__("linux"), __import_name__("fork")))
int __host_fork(void *asyncify_stack);

extern char __stack_high[];

enum {
	FIXED_PART = 512 << 10,
	DEPTH_FACTOR = 3,
	GRAIN = 64 << 10,
};

static struct {
	char *current, *end;
} asyncify_stack;

static char *buffer;
static size_t buffer_size;

static int provide_buffer(void)
{
	size_t depth = __stack_high - (char *)__builtin_frame_address(0);
	size_t wanted = FIXED_PART + DEPTH_FACTOR * depth;
	if (wanted <= buffer_size) return 0;
	/* Doubled, so that forks at ever deeper levels do not each move it. */
	if (wanted < 2 * buffer_size) wanted = 2 * buffer_size;
	wanted = (wanted + GRAIN - 1) & -(size_t)GRAIN;
	if (buffer) __memory_unmap((size_t)buffer, buffer_size);
	buffer_size = 0;
	long r = __memory_map(wanted, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0, 0);
	buffer = (char *)r;
	if (r < 0 && r > -4096) return buffer = 0, r;
	buffer_size = wanted;
	return 0;
}

/* The child has one thread: the one that called. */
void __post_Fork(int result)
{
	if (result) return;
	pthread_t self = __pthread_self();
	self->robust_list.pending = 0;
	self->next = self->prev = self;
	__thread_list_lock = 0;
	libc.threads_minus_1 = 0;
	if (libc.need_locks) libc.need_locks = -1;
}

pid_t _Fork(void)
{
	int r = provide_buffer();
	if (r < 0) return __syscall_ret(r);
	asyncify_stack.current = buffer;
	asyncify_stack.end = buffer + buffer_size;
	r = __host_fork(&asyncify_stack);
	__post_Fork(r);
	if (__signal_flag) __signal_handle_all();
	return __syscall_ret(r);
}
