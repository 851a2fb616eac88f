/* Searching sixteen bytes at a time. Only aligned vectors are read, so a read never
 * leaves the memory even when it goes past the end of a string. */
#include <stdint.h>
#include <string.h>

typedef signed char bytes16 __attribute__((__vector_size__(16), __may_alias__));

enum { VECTOR = sizeof(bytes16), ALL = 0xffff };

static inline bytes16 repeat(int byte)
{
	return (bytes16){0} + (signed char)byte;
}

/* The aligned vector that holds the byte at p, and that byte's place in it. */
static inline const char *vector_of(const void *p)
{
	return (const char *)((uintptr_t)p & -(uintptr_t)VECTOR);
}

static inline unsigned place_of(const void *p)
{
	return (uintptr_t)p % VECTOR;
}

/* One bit for each byte that is equal; the lowest bit belongs to the first byte. */
static inline unsigned equal_bytes(const char *vector, bytes16 pattern)
{
	return __builtin_wasm_bitmask_i8x16(*(const bytes16 *)vector == pattern);
}

static inline unsigned first_of(unsigned bits) { return __builtin_ctz(bits); }
static inline unsigned last_of(unsigned bits) { return 31 - __builtin_clz(bits); }
