/* Delivery of signals. Actions, masks and pending sets are the kernel's; here
 * the handlers are called. The kernel has applied the handler's mask when it
 * hands out a signal, and gets the old mask back afterwards. A handler that
 * jumps out with siglongjmp restores the mask saved by sigsetjmp instead. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include "syscall.h"
#include "wasm_guest.h"

volatile int __signal_flag;

struct taken_signal {
	uint32_t signo;
	uint32_t handler;
	uint32_t flags;
	uint32_t zero;
	uint64_t old_mask;
	siginfo_t info;
};

_Static_assert(offsetof(struct taken_signal, info) == 24 && sizeof(siginfo_t) == 128,
               "layout of signal_take");

static long host(int nr, void *argument)
{
	return __host_syscall(nr, (int)argument, 0, 0, 0, 0, 0);
}

static void call_handler(struct taken_signal *signal)
{
	if (!(signal->flags & SA_SIGINFO)) {
		((void (*)(int))signal->handler)(signal->signo);
		return;
	}
	ucontext_t context = { .uc_stack.ss_flags = SS_DISABLE };
	memcpy(&context.uc_sigmask, &signal->old_mask, sizeof signal->old_mask);
	((void (*)(int, siginfo_t *, void *))signal->handler)(signal->signo, &signal->info, &context);
}

void __signal_handle_all(void)
{
	struct taken_signal signal;
	while (host(HOST_SIGNAL_TAKE, &signal) > 0) {
		int saved_errno = errno;
		call_handler(&signal);
		errno = saved_errno;
		host(HOST_SIGNAL_RETURN, &signal.old_mask);
	}
}

extern __attribute__((__weak__)) __typeof(__signal_handle_above_host) __signal_handle_above_host;

/* Called by __signal_run (signal_run.s). */
hidden void __signal_run_for_host(void)
{
	if (__signal_handle_above_host) __signal_handle_above_host();
	else __signal_handle_all();
}
