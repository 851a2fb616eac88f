#include "word_scan.h"

void *__memrchr(const void *block, int byte, size_t size)
{
	const unsigned char *start = block, *p = start + size;
	unsigned char wanted = byte;
	for (; p > start && !is_aligned(p); p--)
		if (p[-1] == wanted) return (void *)(p - 1);
	/* Only whether the word has the byte is exact; the bytes say which is last. */
	word pattern = repeat(wanted);
	while (p - start >= WORD && !zero_bytes(*(const word *)(p - WORD) ^ pattern)) p -= WORD;
	for (; p > start; p--)
		if (p[-1] == wanted) return (void *)(p - 1);
	return 0;
}

__attribute__((__weak__, __alias__("__memrchr")))
void *memrchr(const void *, int, size_t);
