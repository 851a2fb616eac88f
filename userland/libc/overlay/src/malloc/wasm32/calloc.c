#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include "../small_blocks.h"

hidden void *__libc_calloc(size_t, size_t);

void *calloc(size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return 0;
	}
	if (bytes > SMALL_MAX) return __libc_calloc(1, bytes);
	void *p = small_malloc(bytes);
	return p ? memset(p, 0, bytes) : 0;
}
