/* Unaligned words, and WebAssembly's own instructions for blocks. */
#include <stdint.h>
#include <string.h>

enum { MAX_SHORT = 32 };

typedef uint64_t unaligned64 __attribute__((__aligned__(1), __may_alias__));
typedef signed char unaligned128
	__attribute__((__vector_size__(16), __aligned__(1), __may_alias__));
typedef uint32_t unaligned32 __attribute__((__aligned__(1), __may_alias__));

static inline unaligned128 load128(const char *p) { return *(const unaligned128 *)p; }
static inline uint64_t load64(const char *p) { return *(const unaligned64 *)p; }
static inline uint32_t load32(const char *p) { return *(const unaligned32 *)p; }
static inline void store64(char *p, uint64_t value) { *(unaligned64 *)p = value; }
static inline void store32(char *p, uint32_t value) { *(unaligned32 *)p = value; }

/* For functions that contain one of the instructions. */
#define WITH_BLOCKS __attribute__((__target__("bulk-memory,bulk-memory-opt")))

WITH_BLOCKS static inline void *copy_block(void *to, const void *from, size_t size)
{
	__asm__ volatile ("local.get %0\n\tlocal.get %1\n\tlocal.get %2\n\tmemory.copy 0, 0"
	                  : : "r"(to), "r"(from), "r"(size) : "memory");
	return to;
}

WITH_BLOCKS static inline void *fill_block(void *to, int byte, size_t size)
{
	__asm__ volatile ("local.get %0\n\tlocal.get %1\n\tlocal.get %2\n\tmemory.fill 0"
	                  : : "r"(to), "r"(byte), "r"(size) : "memory");
	return to;
}

/* At most MAX_SHORT bytes, which may overlap. */
static inline void *copy_short(void *to, const void *from, size_t size)
{
	char *t = to;
	const char *f = from;
	if (size >= 16) {
		uint64_t a = load64(f), b = load64(f + 8);
		uint64_t c = load64(f + size - 16), d = load64(f + size - 8);
		store64(t, a);
		store64(t + 8, b);
		store64(t + size - 16, c);
		store64(t + size - 8, d);
	} else if (size >= 8) {
		uint64_t a = load64(f), b = load64(f + size - 8);
		store64(t, a);
		store64(t + size - 8, b);
	} else if (size >= 4) {
		uint32_t a = load32(f), b = load32(f + size - 4);
		store32(t, a);
		store32(t + size - 4, b);
	} else if (size) {
		char a = f[0], b = f[size / 2], c = f[size - 1];
		t[0] = a;
		t[size / 2] = b;
		t[size - 1] = c;
	}
	return to;
}
