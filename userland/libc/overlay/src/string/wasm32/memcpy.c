/* memory.copy has a fixed cost of some 15 ns, so short blocks are moved by loads
 * and stores that overlap in the middle. */
#include "block_access.h"

WITH_BLOCKS void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	if (size > MAX_SHORT) return copy_block(to, from, size);
	return copy_short(to, from, size);
}
