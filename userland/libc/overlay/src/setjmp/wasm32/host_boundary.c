/* Jumps out of handlers that the host runs between two loop turns. Such a handler
 * stands above frames of the host, and no exception passes those. So the jump ends
 * the handler, and is done when the program makes its next system call. */
#include <setjmp.h>
#include "wasm_guest.h"
#include "jump_target.h"

/* The innermost of our frames that the host called, and the jump that it stopped. */
static struct __jmp_buf_tag *boundary PER_THREAD, *deferred_env PER_THREAD;
static int deferred_value PER_THREAD;

static uintptr_t frame_of(struct __jmp_buf_tag *env)
{
	return (uintptr_t)((struct jump_target *)env->__jb)->frame;
}

struct __jmp_buf_tag *__jump_as_far_as_possible(struct __jmp_buf_tag *env, int value)
{
	/* The stack grows downwards: a lower frame is one that the handler called. */
	if (!boundary || frame_of(env) <= frame_of(boundary)) return env;
	deferred_env = env;
	deferred_value = value;
	return boundary;
}

void __signal_handle_above_host(void)
{
	jmp_buf here;
	struct __jmp_buf_tag *outer = boundary;
	if (!setjmp(here)) {
		boundary = here;
		__signal_handle_all();
	}
	boundary = outer;
	if (deferred_env) __signal_flag = 1;
}

void __deferred_jump(void)
{
	struct __jmp_buf_tag *env = deferred_env;
	if (!env || boundary) return;
	deferred_env = 0;
	longjmp(env, deferred_value);
}
