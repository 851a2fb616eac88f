/* As memcpy: memory.fill for what is long. */
#include "block_access.h"

WITH_BLOCKS void *memset(void *to, int byte, size_t size)
{
	if (size > MAX_SHORT) return fill_block(to, byte, size);
	char *p = to;
	uint64_t word = (unsigned char)byte * 0x0101010101010101ULL;
	if (size >= 16) {
		store64(p, word);
		store64(p + 8, word);
		store64(p + size - 16, word);
		store64(p + size - 8, word);
	} else if (size >= 8) {
		store64(p, word);
		store64(p + size - 8, word);
	} else if (size >= 4) {
		store32(p, word);
		store32(p + size - 4, word);
	} else if (size) {
		p[0] = p[size / 2] = p[size - 1] = byte;
	}
	return to;
}
