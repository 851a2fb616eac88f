/* As memcpy: memory.fill for what is long. */
#include "block_access.h"

WITH_BLOCKS void *memset(void *to, int byte, size_t size)
{
	if (size > MAX_SHORT) return fill_block(to, byte, size);
	char *p = to;
	if (size >= 16) {
		unaligned128 block = (unaligned128){0} + (signed char)byte;
		if (size > 64) {
			store128(p + 32, block);
			store128(p + 48, block);
			store128(p + size - 64, block);
			store128(p + size - 48, block);
		}
		if (size > 32) {
			store128(p + 16, block);
			store128(p + size - 32, block);
		}
		store128(p, block);
		store128(p + size - 16, block);
		return to;
	}
	uint64_t word = (unsigned char)byte * 0x0101010101010101ULL;
	if (size >= 8) {
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
