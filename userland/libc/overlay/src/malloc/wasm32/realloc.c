#include <stdlib.h>
#include <string.h>
#include "../small_blocks.h"

void *realloc(void *p, size_t n)
{
	if (!p) return malloc(n);
	if (!is_small(p)) return __libc_realloc(p, n);
	size_t have = small_size(p);
	if (n <= have && (n + 8 + 15 >> 4) == (have + 8 + 15 >> 4)) return p;
	void *moved = malloc(n);
	if (!moved) return n <= have ? p : 0;
	memcpy(moved, p, n < have ? n : have);
	small_free(p);
	return moved;
}
