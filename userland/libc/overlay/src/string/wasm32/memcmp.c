#include "block_access.h"

/* The first differing byte decides, and it is the highest in big-endian order. */
static inline int order(uint64_t a, uint64_t b)
{
	a = __builtin_bswap64(a);
	b = __builtin_bswap64(b);
	return (a > b) - (a < b);
}

int memcmp(const void *left, const void *right, size_t size)
{
	const char *l = left, *r = right;
	if (size < 8) {
		for (; size; size--, l++, r++)
			if (*l != *r) return (unsigned char)*l - (unsigned char)*r;
		return 0;
	}
	for (; size > 16; size -= 16, l += 16, r += 16) {
		unsigned same = __builtin_wasm_bitmask_i8x16(load128(l) == load128(r));
		if (same == 0xffff) continue;
		size_t first = __builtin_ctz(~same);
		return (unsigned char)l[first] - (unsigned char)r[first];
	}
	for (; size > 8; size -= 8, l += 8, r += 8) {
		uint64_t a = load64(l), b = load64(r);
		if (a != b) return order(a, b);
	}
	/* The last eight bytes, some of them perhaps again. */
	return order(load64(l + size - 8), load64(r + size - 8));
}
