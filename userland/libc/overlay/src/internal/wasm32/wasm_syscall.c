/* The libc's one way to the host. A call that concerns only this memory or this
 * thread is answered here; any other goes to the import, after which pending
 * signal handlers run, and the call is repeated if the host asks for it. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include "syscall.h"
#include "pthread_impl.h"
#include "wasm_guest.h"

/* Defined only in programs that use vfork or posix_spawn, and longjmp. */
extern __attribute__((__weak__)) __typeof(__embryo_end) __embryo_end;
extern __attribute__((__weak__)) __typeof(__deferred_jump) __deferred_jump;

/* Handlers run on the ordinary stack: an alternate one is only remembered. */
static long alternate_stack(const stack_t *new, stack_t *old)
{
	static stack_t current = { .ss_flags = SS_DISABLE };
	stack_t previous = current;
	if (new) current = *new;
	if (old) *old = previous;
	return 0;
}

/* An embryo child is over when one of these returns its process id. */
static int ends_embryo(long n)
{
	switch (n) {
	case SYS_execve:
	case SYS_execveat:
	case SYS_exit:
	case SYS_exit_group:
	case SYS_kill:
	case SYS_tkill:
	case SYS_tgkill:
		return 1;
	default:
		return 0;
	}
}

static void after_signal(void)
{
	if (__deferred_jump) __deferred_jump();
	__signal_handle_all();
}

long __wasm_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	switch (n) {
	case SYS_brk:
		return 0;
	case SYS_mmap2:
		return __memory_map(b, c, d, e, f, a);
	case SYS_munmap:
		return __memory_unmap(a, b);
	case SYS_mremap:
		return __memory_remap(a, b, c, d);
	case SYS_madvise:
		return __memory_advise(a, b, c);
	case SYS_msync:
		return __shared_exchange(a, b);
	case SYS_mprotect:
	case SYS_mlock:
	case SYS_mlock2:
	case SYS_munlock:
	case SYS_mlockall:
	case SYS_munlockall:
	case SYS_membarrier:
	case SYS_set_robust_list:
		return 0;
	case SYS_gettid:
		if (__pthread_self() != &__wasm_main_thread) return __pthread_self()->tid;
		n = SYS_getpid;
		/* fall through */
	case SYS_getpid:
		if (__signal_words_pid()) return __signal_words_pid();
		break;
	case SYS_rt_sigprocmask:
		if (__signal_words_answer(d)) {
			long tell = __signal_words_mask(a, (const void *)b, (void *)c);
			if (tell <= 0) return tell;
			b = c = 0;
		}
		break;
	case SYS_rt_sigaction:
		if (__signal_words_answer(d)) {
			long tell = __signal_words_action(a, (const void *)b, (void *)c);
			if (tell <= 0) return tell;
			c = 0;
		}
		break;
	case SYS_tkill:
		if (a == MAIN_TID) a = __host_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
		break;
	case SYS_sigaltstack:
		return alternate_stack((const stack_t *)a, (stack_t *)b);
	}

	int refresh = __shared_files && __shared_publish(n, b, c);
	long r;
	do {
		r = __host_syscall(n, a, b, c, d, e, f);
		if (__signal_flag) after_signal();
	} while (r == -RESTART_CALL);

	if (refresh && r >= 0) __shared_refresh();
	if (r > 0 && ends_embryo(n) && __embryo_end) __embryo_end(r);
	return r;
}
