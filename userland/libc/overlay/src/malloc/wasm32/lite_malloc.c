/* malloc, and the regions that small blocks are cut from. */
#include <stdlib.h>
#include "lock.h"
#include "../small_blocks.h"

#define REGION_BYTES (16*1024 - 32)

struct small_block *__small_free[SMALL_CLASSES];

static char *region, *region_end;
static volatile int region_lock[1];

static void use_rest_of_region(void)
{
	unsigned rest = region_end - region >> 4;
	if (!rest) return;
	char *payload = region + 8;
	((unsigned *)payload)[-1] = rest << 4 | SMALL_MARK;
	small_free(payload);
}

static char *cut(size_t size)
{
	if (region_end - region < size) {
		char *fresh = __libc_malloc_impl(REGION_BYTES);
		if (!fresh) return 0;
		use_rest_of_region();
		region = fresh + 8;
		region_end = fresh + REGION_BYTES;
	}
	char *payload = region + 8;
	((unsigned *)payload)[-1] = size | SMALL_MARK;
	region += size;
	return payload;
}

void *__small_cut(unsigned class)
{
	LOCK(region_lock);
	char *payload = cut(16 * class);
	UNLOCK(region_lock);
	return payload;
}

void *__libc_malloc(size_t n)
{
	return __libc_malloc_impl(n);
}

void *malloc(size_t n)
{
	return n <= SMALL_MAX ? small_malloc(n) : __libc_malloc_impl(n);
}
