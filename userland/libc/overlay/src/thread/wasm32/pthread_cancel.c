/* A thread can only cancel itself: at once if it is asynchronous, else at its
 * next pthread_testcancel. */
#define _GNU_SOURCE
#include "pthread_impl.h"

void __testcancel(void)
{
	pthread_t self = __pthread_self();
	if (self->cancel && !self->canceldisable) pthread_exit(PTHREAD_CANCELED);
}

int pthread_cancel(pthread_t thread)
{
	thread->cancel = 1;
	if (thread->cancelasync) __testcancel();
	return 0;
}
