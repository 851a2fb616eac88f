/* mmap and its family over the one linear memory. Everything between the end of
 * the program's data and `top` is either handed out or a hole; a hole's first
 * bytes link it to the next, in address order, and no two holes touch. Above
 * `top` memory is free, and from `fresh` on it has never been written, so it
 * need not be cleared. Memory only grows: WebAssembly cannot give it back.
 *
 * What belongs to whom is guarded by a lock, which is not held while a file is read.
 *
 * Files are mapped by reading them; shared_files.c takes care of what is written to
 * shared mappings. Shared anonymous memory is private to the process, also after
 * fork. Protection is not enforced. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include "libc.h"
#include "lock.h"
#include "syscall.h"
#include "wasm_guest.h"

enum { WASM_PAGE = 65536, MAX_SPARE = 1 << 20 };

struct hole {
	size_t size;
	struct hole *next;
};

/* Made by the linker: the first address after the program's data. */
extern char __heap_base[];

static size_t base, top, fresh;
static struct hole *holes;
static volatile int lock[1];

static size_t round_up(size_t size)
{
	return (size + PAGE_SIZE - 1) & -PAGE_SIZE;
}

static size_t hole_end(const struct hole *hole)
{
	return (size_t)hole + hole->size;
}

static void initialise(void)
{
	base = top = fresh = round_up((size_t)__heap_base);
}

/* Spare pages beyond the need save calls in programs that grow a lot, and are
 * few in small ones, since a fork copies them. */
static int grow_memory(uint64_t end)
{
	uint64_t present = (uint64_t)__builtin_wasm_memory_size(0) * WASM_PAGE;
	if (end <= present) return 1;
	size_t needed = (end - present + WASM_PAGE - 1) / WASM_PAGE;
	size_t spare = (top - base) / 16;
	if (spare > MAX_SPARE) spare = MAX_SPARE;
	if (__builtin_wasm_memory_grow(0, needed + spare / WASM_PAGE) != -1UL
		|| __builtin_wasm_memory_grow(0, needed) != -1UL) return 1;
	/* The kernel may find memory that other programs were promised and have not used. */
	return !__host_syscall(HOST_MEMORY_WANTED, needed, 0, 0, 0, 0, 0)
		&& __builtin_wasm_memory_grow(0, needed) != -1UL;
}

static void clear(size_t start, size_t end)
{
	memset((void *)start, 0, end - start);
}

/* Moves top up by size and gives the memory below it, cleared; 0 if there is none. */
static size_t take_top(size_t size)
{
	uint64_t end = (uint64_t)top + size;
	if (end > SIZE_MAX - PAGE_SIZE || !grow_memory(end)) return 0;
	size_t start = top;
	top = end;
	if (start < fresh) clear(start, fresh < top ? fresh : top);
	if (fresh < top) fresh = top;
	return start;
}

/* Takes the first size bytes of the hole that *link names. */
static size_t take_from_hole(struct hole **link, size_t size)
{
	struct hole *hole = *link;
	size_t start = (size_t)hole;
	if (hole->size == size) {
		*link = hole->next;
	} else {
		struct hole *rest = (void *)(start + size);
		rest->size = hole->size - size;
		rest->next = hole->next;
		*link = rest;
	}
	clear(start, start + size);
	return start;
}

static size_t find_room(size_t size)
{
	for (struct hole **link = &holes; *link; link = &(*link)->next)
		if ((*link)->size >= size) return take_from_hole(link, size);
	return take_top(size);
}

static size_t take(size_t size)
{
	LOCK(lock);
	size_t start = find_room(size);
	UNLOCK(lock);
	return start;
}

static void make_hole(size_t start, size_t end)
{
	struct hole **link = &holes;
	while (*link && hole_end(*link) < start) link = &(*link)->next;
	struct hole *next = *link;
	while (next && (size_t)next <= end) {
		if ((size_t)next < start) start = (size_t)next;
		if (hole_end(next) > end) end = hole_end(next);
		next = next->next;
	}
	if (end == top) {
		*link = 0;
		top = start;
		return;
	}
	struct hole *hole = (void *)start;
	hole->size = end - start;
	hole->next = next;
	*link = hole;
}

/* Makes [start, end) free, whatever part of it was free already. */
static void release(size_t start, size_t end)
{
	LOCK(lock);
	make_hole(start, end);
	UNLOCK(lock);
}

/* Is all of [address, address + size) handed out? */
static int is_mapped(size_t address, size_t size)
{
	if (address < base || address > top || size > top - address) return 0;
	LOCK(lock);
	struct hole *hole = holes;
	while (hole && ((size_t)hole >= address + size || hole_end(hole) <= address))
		hole = hole->next;
	UNLOCK(lock);
	return !hole;
}

static long fill_from_file(size_t address, size_t size, int fd, uint64_t offset)
{
	while (size) {
		long r = __syscall(SYS_pread, fd, address, size, __SYSCALL_LL_PRW(offset));
		if (r == -EINTR) continue;
		if (r == -EISDIR || r == -ESPIPE || r == -EINVAL) return -ENODEV;
		if (r <= 0) return r;
		address += r;
		offset += r;
		size -= r;
	}
	return 0;
}

long __memory_map(size_t size, int prot, int flags, int fd, unsigned page_offset, size_t address)
{
	int shared = flags & MAP_SHARED, anonymous = flags & MAP_ANONYMOUS;
	if (!size || !(flags & (MAP_SHARED|MAP_PRIVATE))) return -EINVAL;
	if (size > PTRDIFF_MAX) return -ENOMEM;
	if (!base) initialise();

	size_t rounded = round_up(size);
	if (flags & MAP_FIXED) {
		if (address % PAGE_SIZE) return -EINVAL;
		if (!is_mapped(address, rounded)) return -ENOMEM;
		long r = __shared_forget(address, rounded);
		if (r) return r;
		clear(address, address + rounded);
	} else {
		address = take(rounded);
		if (!address) return -ENOMEM;
	}
	if (anonymous) return address;

	uint64_t offset = (uint64_t)page_offset * SYSCALL_MMAP2_UNIT;
	long r = fill_from_file(address, size, fd, offset);
	if (!r && shared && prot & PROT_WRITE) r = __shared_remember(address, size, fd, offset);
	if (!r) return address;
	if (!(flags & MAP_FIXED)) release(address, address + rounded);
	return r;
}

long __memory_unmap(size_t address, size_t size)
{
	if (address % PAGE_SIZE || !size || size > PTRDIFF_MAX) return -EINVAL;
	size_t start = address < base ? base : address;
	uint64_t end = (uint64_t)address + round_up(size);
	if (end > top) end = top;
	if (start >= end) return 0;
	long r = __shared_forget(start, end - start);
	if (!r) release(start, end);
	return r;
}

/* Gives the mapping that ends at `end` more bytes in place, if it can. */
static int extend(size_t end, size_t more)
{
	size_t start = 0;
	LOCK(lock);
	if (end == top) {
		start = take_top(more);
	} else {
		struct hole **link = &holes;
		while (*link && (size_t)*link != end) link = &(*link)->next;
		if (*link && (*link)->size >= more) start = take_from_hole(link, more);
	}
	UNLOCK(lock);
	return start != 0;
}

long __memory_remap(size_t address, size_t old_size, size_t new_size, int flags)
{
	if (address % PAGE_SIZE || !old_size || !new_size || flags & ~MREMAP_MAYMOVE) return -EINVAL;
	if (old_size > PTRDIFF_MAX || !is_mapped(address, round_up(old_size))) return -EFAULT;
	if (new_size > PTRDIFF_MAX) return -ENOMEM;
	if (__shared_touches(address, round_up(old_size))) return -EINVAL;
	old_size = round_up(old_size);
	new_size = round_up(new_size);

	if (new_size < old_size) release(address + new_size, address + old_size);
	if (new_size <= old_size) return address;
	if (extend(address + old_size, new_size - old_size)) return address;
	if (!(flags & MREMAP_MAYMOVE)) return -ENOMEM;
	size_t moved = take(new_size);
	if (!moved) return -ENOMEM;
	memcpy((void *)moved, (void *)address, old_size);
	release(address, address + old_size);
	return moved;
}

long __memory_advise(size_t address, size_t size, int advice)
{
	if (address % PAGE_SIZE) return -EINVAL;
	if (advice != MADV_DONTNEED) return 0;
	if (size > PTRDIFF_MAX || !is_mapped(address, round_up(size))) return -ENOMEM;
	if (__shared_touches(address, round_up(size))) return __shared_exchange(address, size);
	clear(address, address + round_up(size));
	return 0;
}
