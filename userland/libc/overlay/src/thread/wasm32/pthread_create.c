/* One thread: creating another fails as it does when the system has none left,
 * and exiting the only one ends the process. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include "pthread_impl.h"

static void no_destructors(void)
{
}
weak_alias(no_destructors, __pthread_tsd_run_dtors);

void __tl_lock(void) {}
void __tl_unlock(void) {}
void __tl_sync(pthread_t thread) {}

int __pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                     void *(*entry)(void *), void *restrict argument)
{
	return EAGAIN;
}

_Noreturn void __pthread_exit(void *result)
{
	pthread_t self = __pthread_self();
	self->canceldisable = 1;
	self->cancelasync = 0;
	while (self->cancelbuf) {
		struct __ptcb *cleanup = self->cancelbuf;
		self->cancelbuf = cleanup->__next;
		cleanup->__f(cleanup->__x);
	}
	__pthread_tsd_run_dtors();
	exit(0);
}

void __do_cleanup_push(struct __ptcb *cleanup)
{
	pthread_t self = __pthread_self();
	cleanup->__next = self->cancelbuf;
	self->cancelbuf = cleanup;
}

void __do_cleanup_pop(struct __ptcb *cleanup)
{
	__pthread_self()->cancelbuf = cleanup->__next;
}

weak_alias(__pthread_exit, pthread_exit);
weak_alias(__pthread_create, pthread_create);
