#include "vector_scan.h"

void *__memrchr(const void *block, int byte, size_t size)
{
	if (!size) return 0;
	const char *start = block, *last = start + size - 1, *p = vector_of(last);
	bytes16 pattern = repeat(byte);
	unsigned found = equal_bytes(p, pattern) & ALL >> (VECTOR - 1 - place_of(last));
	while (!found) {
		if (p <= start) return 0;
		p -= VECTOR;
		found = equal_bytes(p, pattern);
	}
	p += last_of(found);
	return p >= start ? (void *)p : 0;
}

__attribute__((__weak__, __alias__("__memrchr")))
void *memrchr(const void *, int, size_t);
