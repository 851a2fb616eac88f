/* The last act of a detached thread. Compiled code keeps nothing on the C stack that
 * it needs after the first call, so another thread may use the memory at once. */
#include "pthread_impl.h"

void __unmapself(void *base, size_t size)
{
	__syscall(SYS_munmap, base, size);
	for (;;) __syscall(SYS_exit, 0);
}
