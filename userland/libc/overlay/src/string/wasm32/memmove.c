/* As memcpy: short blocks are loaded whole before anything is stored. */
#include "block_access.h"

WITH_BLOCKS void *memmove(void *to, const void *from, size_t size)
{
	if (size > MAX_SHORT) return copy_block(to, from, size);
	return copy_short(to, from, size);
}
