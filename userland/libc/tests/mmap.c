/* Mappings: zeroed, reused after munmap, merged, moved; files by content. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "check.h"

enum { PAGE = 4096 };

static char *map(size_t size)
{
	char *p = mmap(0, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED && (size_t)p % PAGE == 0);
	for (size_t i = 0; i < size; i += 512) CHECK(!p[i]);
	memset(p, 7, size);
	return p;
}

static void anonymous(void)
{
	char *a = map(10 * PAGE), *guard = map(PAGE);
	CHECK(!munmap(a, 3 * PAGE) && !munmap(a + 6 * PAGE, 4 * PAGE));
	CHECK(!munmap(a + 2 * PAGE, 5 * PAGE));
	CHECK(map(10 * PAGE) == a);
	CHECK(munmap(a + 1, PAGE) == -1 && errno == EINVAL);
	CHECK(!munmap(a, 10 * PAGE) && !munmap(a, 10 * PAGE));

	char *small = map(PAGE);
	strcpy(small, "kept");
	char *large = mremap(small, PAGE, 100 * PAGE, MREMAP_MAYMOVE);
	CHECK(large != MAP_FAILED && !strcmp(large, "kept"));
	for (size_t i = PAGE; i < 100 * PAGE; i += 512) CHECK(!large[i]);
	CHECK(mremap(large, 100 * PAGE, PAGE, 0) == large && !strcmp(large, "kept"));
	CHECK(!madvise(large, PAGE, MADV_DONTNEED) && !large[0]);
	CHECK(mmap(large, PAGE, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED, -1, 0) == large);
	CHECK(mmap(0, (size_t)3 << 30, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	CHECK(errno == ENOMEM && guard[0] == 7);
}

static void file(void)
{
	char name[] = "/tmp/mmap.XXXXXX";
	int fd = mkstemp(name);
	CHECK(fd >= 0 && !unlink(name));
	char content[PAGE + 100];
	memset(content, 'x', sizeof content);
	content[PAGE] = 'y';
	CHECK(write(fd, content, sizeof content) == sizeof content);
	char *p = mmap(0, sizeof content, PROT_READ|PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED && !memcmp(p, content, sizeof content) && !p[PAGE + 100]);
	char *q = mmap(0, 100, PROT_READ, MAP_SHARED, fd, PAGE);
	CHECK(q != MAP_FAILED && q[0] == 'y' && q[1] == 'x');
	CHECK(mmap(0, 100, PROT_READ, MAP_PRIVATE, 99, 0) == MAP_FAILED && errno == EBADF);
	CHECK(mmap(0, 0, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EINVAL);
}

int main(void)
{
	anonymous();
	file();
	return 0;
}
