/* Small blocks: what makes malloc fast for programs that allocate all the time.
 *
 * A request of up to SMALL_MAX bytes is served from a list of free blocks of its
 * class, or cut from a region; it is given back to its list and never merged. The
 * rest, and the regions, come from musl's allocator, which merges. Taking a block from
 * a list and putting it back have no point in them at which another thread could take
 * over, so they need no lock; cutting one does.
 *
 * A block of class c has 16*c bytes: a header of 8 and the payload, which is
 * aligned to 16 as musl's is. The word before the payload is where musl keeps a
 * chunk's size, whose bits 1 to 3 are always 0: SMALL_MARK tells the two apart.
 */
#ifndef SMALL_BLOCKS_H
#define SMALL_BLOCKS_H

#include <stddef.h>
#include <features.h>

#define SMALL_CLASSES 65
#define SMALL_MAX (16*(SMALL_CLASSES-1)-8)
#define SMALL_MARK 3u
#define SMALL_MARK_BITS 15u

struct small_block {
	struct small_block *next;
};

extern hidden struct small_block *__small_free[SMALL_CLASSES];

hidden void *__libc_malloc_impl(size_t);
hidden void __libc_free(void *);
hidden void *__libc_realloc(void *, size_t);
hidden void *__small_cut(unsigned);

static inline unsigned small_header(const void *p)
{
	return ((const unsigned *)p)[-1];
}

static inline int is_small(const void *p)
{
	return (small_header(p) & SMALL_MARK_BITS) == SMALL_MARK;
}

static inline size_t small_size(const void *p)
{
	return (small_header(p) & ~SMALL_MARK_BITS) - 8;
}

static inline void *small_malloc(size_t n)
{
	unsigned class = n + 8 + 15 >> 4;
	struct small_block *block = __small_free[class];
	if (!block) return __small_cut(class);
	__small_free[class] = block->next;
	return block;
}

static inline void small_free(void *p)
{
	struct small_block *block = p;
	unsigned class = small_header(p) >> 4;
	block->next = __small_free[class];
	__small_free[class] = block;
}

#endif
