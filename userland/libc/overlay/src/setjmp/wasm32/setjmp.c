/* The run-time part of setjmp and longjmp. The compiler turns longjmp into an
 * exception, and setjmp into a numbered label of the frame it stands in: it
 * calls __wasm_setjmp to note label and frame, and after a catch asks
 * __wasm_setjmp_test which label of this frame, if any, the jump goes to.
 * sigsetjmp(env, 1) announces env first, so that the mask is saved with it. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include "syscall.h"
#include "wasm_guest.h"
#include "jump_target.h"
#undef _setjmp

enum { TAG_C_LONGJMP = 1 };

_Static_assert(sizeof(struct jump_target) <= sizeof(__jmp_buf), "jmp_buf too small");

static struct __jmp_buf_tag *mask_wanted PER_THREAD;

struct __jmp_buf_tag *__sigsetjmp_prepare(struct __jmp_buf_tag *env, int savemask)
{
	mask_wanted = savemask ? env : 0;
	return env;
}

hidden void __wasm_setjmp(void *env_pointer, uint32_t label, void *frame)
{
	struct __jmp_buf_tag *env = env_pointer;
	struct jump_target *target = (void *)env->__jb;
	target->label = label;
	target->frame = frame;
	env->__fl = mask_wanted == env;
	if (env->__fl) {
		mask_wanted = 0;
		__syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, env->__ss, _NSIG/8);
	}
}

hidden uint32_t __wasm_setjmp_test(void *env_pointer, void *frame)
{
	struct __jmp_buf_tag *env = env_pointer;
	struct jump_target *target = (void *)env->__jb;
	return target->frame == frame ? target->label : 0;
}

_Noreturn void __throw_longjmp(struct __jmp_buf_tag *env, int value)
{
	env = __jump_as_far_as_possible(env, value);
	struct jump_target *target = (void *)env->__jb;
	if (env->__fl) __syscall(SYS_rt_sigprocmask, SIG_SETMASK, env->__ss, 0, _NSIG/8);
	target->thrown.env = env;
	target->thrown.value = value ? value : 1;
	__builtin_wasm_throw(TAG_C_LONGJMP, &target->thrown);
}

hidden _Noreturn void __wasm_longjmp(void *env, int value)
{
	__throw_longjmp(env, value);
}

int _setjmp(jmp_buf env)
{
	__builtin_trap();
}
