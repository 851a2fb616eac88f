/* Cancellation. A signal, whose handler does nothing, interrupts the call that the thread
 * waits in; the call then sees that the thread is to end. A thread whose cancellation is
 * asynchronous ends in the handler. */
#define _GNU_SOURCE
#include <string.h>
#include "pthread_impl.h"
#include "syscall.h"

static long cancel(pthread_t self)
{
	if (self->canceldisable == PTHREAD_CANCEL_ENABLE || self->cancelasync)
		pthread_exit(PTHREAD_CANCELED);
	self->canceldisable = PTHREAD_CANCEL_DISABLE;
	return -ECANCELED;
}

static int is_wanted(pthread_t self)
{
	return self->cancel && self->canceldisable != PTHREAD_CANCEL_DISABLE;
}

void __testcancel(void)
{
	pthread_t self = __pthread_self();
	if (self->cancel && !self->canceldisable) cancel(self);
}

/* Every call that is a cancellation point, in programs that cancel threads. */
hidden long __syscall_cp_c(syscall_arg_t nr, syscall_arg_t a, syscall_arg_t b, syscall_arg_t c,
                           syscall_arg_t d, syscall_arg_t e, syscall_arg_t f)
{
	pthread_t self = __pthread_self();
	if (is_wanted(self) && nr != SYS_close) return cancel(self);
	long r = __syscall(nr, a, b, c, d, e, f);
	if (r == -EINTR && nr != SYS_close && is_wanted(self)) return cancel(self);
	return r;
}

static void interrupt(int signo)
{
	pthread_t self = __pthread_self();
	if (is_wanted(self) && self->cancelasync) cancel(self);
}

int pthread_cancel(pthread_t thread)
{
	static int prepared;
	if (!prepared) {
		struct sigaction action = { .sa_handler = interrupt };
		memset(&action.sa_mask, -1, _NSIG/8);
		__libc_sigaction(SIGCANCEL, &action, 0);
		prepared = 1;
	}
	thread->cancel = 1;
	if (thread != __pthread_self()) return pthread_kill(thread, SIGCANCEL);
	if (thread->cancelasync) __testcancel();
	return 0;
}
