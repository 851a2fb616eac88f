/* The first thread's stack is known to the linker; musl would look for its end. */
#define _GNU_SOURCE
#include "pthread_impl.h"
#include "wasm_guest.h"

extern char __stack_low[], __stack_high[];

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
	*attributes = (pthread_attr_t){ 0 };
	attributes->_a_detach = thread->detach_state >= DT_DETACHED;
	attributes->_a_guardsize = thread->guard_size;
	if (thread == &__wasm_main_thread) {
		attributes->_a_stackaddr = (uintptr_t)__stack_high;
		attributes->_a_stacksize = __stack_high - __stack_low;
	} else {
		attributes->_a_stackaddr = (uintptr_t)thread->stack;
		attributes->_a_stacksize = thread->stack_size;
	}
	return 0;
}
