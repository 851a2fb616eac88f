/* Writable shared mappings of files. Memory of two programs cannot be one here, so each
 * has a copy, and changes are exchanged with the file when the program itself says that
 * others are to see them or have made some: at msync, at record locks and flock, and
 * before munmap, close, fsync, exec and exit. Programs that share memory guard it by such
 * locks, and see what they would see on Linux; a change in between is seen later.
 *
 * Only bytes that the program has changed are written, so that two programs may change
 * neighbours, and from the end of the file to its beginning: what stands first in a file
 * usually says whether the rest is valid. What lies after the file's end is not written. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "syscall.h"
#include "wasm_guest.h"

/* The descriptors held here stay out of the way of a program's own. */
enum { FIRST_DESCRIPTOR = 200 };

struct shared_file {
	struct shared_file *next;  /* in order of descending offsets */
	size_t start, size;
	uint64_t offset;
	int fd;                    /* a duplicate: the program may close its own */
	unsigned char seen[];      /* what the file had when it was last read or written */
};

struct shared_file *__shared_files;

static long transfer(long call, struct shared_file *map, size_t at, void *data, size_t size)
{
	uint64_t place = map->offset + at;
	return __host_syscall(call, map->fd, (size_t)data, size, (uint32_t)place, place >> 32, 0);
}

/* How much of the mapping lies within the file. */
static size_t inside_file(struct shared_file *map)
{
	struct stat st;
	if (fstat(map->fd, &st) || (uint64_t)st.st_size <= map->offset) return 0;
	uint64_t inside = st.st_size - map->offset;
	return inside < map->size ? inside : map->size;
}

static void write_run(struct shared_file *map, size_t at, size_t end, size_t inside)
{
	unsigned char *own = (unsigned char *)map->start;
	memcpy(map->seen + at, own + at, end - at);
	if (end > inside) end = inside;
	while (at < end) {
		long r = transfer(SYS_pwrite64, map, at, own + at, end - at);
		if (r <= 0) return;
		at += r;
	}
}

static int same_word(const void *a, const void *b)
{
	uint64_t x, y;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return x == y;
}

static void publish(struct shared_file *map)
{
	const unsigned char *own = (unsigned char *)map->start, *seen = map->seen;
	size_t at = map->size, inside = 0;
	int asked = 0;
	while (at) {
		if (at >= 8 && same_word(own + at - 8, seen + at - 8)) {
			at -= 8;
		} else if (own[at - 1] == seen[at - 1]) {
			at--;
		} else {
			size_t end = at;
			while (at && own[at - 1] != seen[at - 1]) at--;
			if (!asked++) inside = inside_file(map);
			write_run(map, at, end, inside);
		}
	}
}

/* What the program changed and nobody published yet would be lost: publish first. */
static void refresh(struct shared_file *map)
{
	size_t at = 0;
	while (at < map->size) {
		long r = transfer(SYS_pread64, map, at, map->seen + at, map->size - at);
		if (r <= 0) break;
		at += r;
	}
	memset(map->seen + at, 0, map->size - at);
	memcpy((void *)map->start, map->seen, map->size);
}

static int overlaps(struct shared_file *map, size_t start, size_t end)
{
	return map->start < end && map->start + map->size > start;
}

int __shared_publish(long n, long operation, long argument)
{
	int takes_lock = 0;
	switch (n) {
	case SYS_fcntl:
		switch (operation) {
		case F_SETLK:
		case F_SETLKW:
		case F_OFD_SETLK:
		case F_OFD_SETLKW:
			takes_lock = ((const struct flock *)argument)->l_type != F_UNLCK;
			break;
		default:
			return 0;
		}
		break;
	case SYS_flock:
		takes_lock = !(operation & LOCK_UN);
		break;
	case SYS_close:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_clone:
	case SYS_execve:
	case SYS_execveat:
	case SYS_exit:
	case SYS_exit_group:
		break;
	default:
		return 0;
	}
	for (struct shared_file *map = __shared_files; map; map = map->next) publish(map);
	return takes_lock;
}

void __shared_refresh(void)
{
	for (struct shared_file *map = __shared_files; map; map = map->next) {
		publish(map);
		refresh(map);
	}
}

long __shared_exchange(size_t start, size_t size)
{
	for (struct shared_file *map = __shared_files; map; map = map->next) {
		if (!overlaps(map, start, start + size)) continue;
		publish(map);
		refresh(map);
	}
	return 0;
}

long __shared_remember(size_t start, size_t size, int fd, uint64_t offset)
{
	long flags = __host_syscall(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
	if (flags < 0) return flags;
	if ((flags & O_ACCMODE) != O_RDWR) return -EACCES;
	long own = __host_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR, 0, 0, 0);
	if (own == -EINVAL) own = __host_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3, 0, 0, 0);
	if (own < 0) return own;
	long memory = __memory_map(sizeof(struct shared_file) + size, PROT_READ|PROT_WRITE,
	                           MAP_PRIVATE|MAP_ANONYMOUS, -1, 0, 0);
	if (memory > -4096UL) {
		__host_syscall(SYS_close, own, 0, 0, 0, 0, 0);
		return memory;
	}
	struct shared_file *map = (void *)memory, **link = &__shared_files;
	*map = (struct shared_file){ .start = start, .size = size, .offset = offset, .fd = own };
	memcpy(map->seen, (void *)start, size);
	while (*link && (*link)->offset > offset) link = &(*link)->next;
	map->next = *link;
	*link = map;
	return 0;
}

static void drop(struct shared_file **link)
{
	struct shared_file *map = *link;
	*link = map->next;
	__host_syscall(SYS_close, map->fd, 0, 0, 0, 0, 0);
	__memory_unmap((size_t)map, sizeof *map + map->size);
}

/* What is left of a mapping before and after [start, end) becomes mappings of their own. */
static long keep_rest(struct shared_file *map, size_t start, size_t end)
{
	size_t last = map->start + map->size;
	long r = 0;
	if (map->start < start)
		r = __shared_remember(map->start, start - map->start, map->fd, map->offset);
	if (!r && end < last)
		r = __shared_remember(end, last - end, map->fd, map->offset + (end - map->start));
	return r;
}

long __shared_forget(size_t start, size_t size)
{
	size_t end = start + size;
	struct shared_file **link = &__shared_files;
	while (*link) {
		if (!overlaps(*link, start, end)) {
			link = &(*link)->next;
			continue;
		}
		publish(*link);
		struct shared_file *map = *link;
		long r = keep_rest(map, start, end);
		if (r) return r;
		for (link = &__shared_files; *link != map; ) link = &(*link)->next;
		drop(link);
		link = &__shared_files;
	}
	return 0;
}

int __shared_touches(size_t start, size_t size)
{
	for (struct shared_file *map = __shared_files; map; map = map->next)
		if (overlaps(map, start, start + size)) return 1;
	return 0;
}
