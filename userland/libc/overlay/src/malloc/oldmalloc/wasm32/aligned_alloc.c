/* An aligned block is cut out of a chunk of musl's allocator, never of a small block. */
#include <stdlib.h>
void *__libc_malloc_impl(size_t);
#define malloc __libc_malloc_impl
#include "../aligned_alloc.c"
