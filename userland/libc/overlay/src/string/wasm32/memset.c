#include <string.h>

void *memset(void *to, int byte, size_t size)
{
	__asm__ volatile ("local.get %0\n\tlocal.get %1\n\tlocal.get %2\n\tmemory.fill 0"
	                  : : "r"(to), "r"(byte), "r"(size) : "memory");
	return to;
}
