/* Unaligned words, and WebAssembly's own instructions for blocks. */
#include <stdint.h>
#include <string.h>

/* Blocks up to this length are moved by loads and stores. */
enum { MAX_SHORT = 128 };

typedef uint64_t unaligned64 __attribute__((__aligned__(1), __may_alias__));
typedef signed char unaligned128
	__attribute__((__vector_size__(16), __aligned__(1), __may_alias__));
typedef uint32_t unaligned32 __attribute__((__aligned__(1), __may_alias__));

static inline unaligned128 load128(const char *p) { return *(const unaligned128 *)p; }
static inline uint64_t load64(const char *p) { return *(const unaligned64 *)p; }
static inline uint32_t load32(const char *p) { return *(const unaligned32 *)p; }
static inline void store128(char *p, unaligned128 value) { *(unaligned128 *)p = value; }
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
	if (size > 64) {
		const char *g = f + size - 64;
		char *u = t + size - 64;
		unaligned128 a = load128(f), b = load128(f + 16), c = load128(f + 32), d = load128(f + 48);
		unaligned128 e = load128(g), h = load128(g + 16), i = load128(g + 32), j = load128(g + 48);
		store128(t, a);
		store128(t + 16, b);
		store128(t + 32, c);
		store128(t + 48, d);
		store128(u, e);
		store128(u + 16, h);
		store128(u + 32, i);
		store128(u + 48, j);
	} else if (size > 32) {
		unaligned128 a = load128(f), b = load128(f + 16);
		unaligned128 c = load128(f + size - 32), d = load128(f + size - 16);
		store128(t, a);
		store128(t + 16, b);
		store128(t + size - 32, c);
		store128(t + size - 16, d);
	} else if (size >= 16) {
		unaligned128 a = load128(f), b = load128(f + size - 16);
		store128(t, a);
		store128(t + size - 16, b);
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
