#include "vector_scan.h"

/* The size may be any number up to SIZE_MAX, when the byte is known to be there. */
void *memchr(const void *block, int byte, size_t size)
{
	if (!size) return 0;
	uintptr_t end = (uintptr_t)block + size;
	if (end < size) end = UINTPTR_MAX;
	bytes16 pattern = repeat(byte);
	const char *p = vector_of(block);
	unsigned found = equal_bytes(p, pattern) & ALL << place_of(block);
	while (!found) {
		p += VECTOR;
		if ((uintptr_t)p >= end) return 0;
		found = equal_bytes(p, pattern);
	}
	p += first_of(found);
	return (uintptr_t)p < end ? (void *)p : 0;
}
