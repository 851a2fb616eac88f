#include <string.h>

void *memmove(void *to, const void *from, size_t size)
{
	__asm__ volatile ("local.get %0\n\tlocal.get %1\n\tlocal.get %2\n\tmemory.copy 0, 0"
	                  : : "r"(to), "r"(from), "r"(size) : "memory");
	return to;
}
