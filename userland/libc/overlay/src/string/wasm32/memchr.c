#include "word_scan.h"

/* The size may be any number up to SIZE_MAX, when the byte is known to be there. */
void *memchr(const void *block, int byte, size_t size)
{
	const unsigned char *p = block;
	unsigned char wanted = byte;
	for (; size && !is_aligned(p); p++, size--)
		if (*p == wanted) return (void *)p;
	word pattern = repeat(wanted);
	for (; size >= WORD; p += WORD, size -= WORD) {
		word found = zero_bytes(*(const word *)p ^ pattern);
		if (found) return (void *)(p + first_byte(found));
	}
	for (; size; p++, size--)
		if (*p == wanted) return (void *)p;
	return 0;
}
