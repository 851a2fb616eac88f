#include <malloc.h>
#include "../malloc_impl.h"
#include "../../small_blocks.h"

hidden void *(*const __realloc_dep)(void *, size_t) = realloc;

size_t malloc_usable_size(void *p)
{
	if (!p) return 0;
	return is_small(p) ? small_size(p) : CHUNK_SIZE(MEM_TO_CHUNK(p)) - OVERHEAD;
}
