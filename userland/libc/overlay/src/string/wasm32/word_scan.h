/* Searching eight bytes at a time. Only aligned words are read, so a read never
 * leaves the memory even when it goes past the end of a string. */
#include <stdint.h>
#include <string.h>

typedef uint64_t word __attribute__((__may_alias__));

enum { WORD = sizeof(word) };

static inline word repeat(unsigned char byte)
{
	return byte * 0x0101010101010101ULL;
}

/* Has a bit set if w has a zero byte; the lowest one belongs to the first such. */
static inline word zero_bytes(word w)
{
	return (w - repeat(0x01)) & ~w & repeat(0x80);
}

static inline int is_aligned(const void *p)
{
	return (uintptr_t)p % WORD == 0;
}

static inline size_t first_byte(word bits)
{
	return __builtin_ctzll(bits) / 8;
}
