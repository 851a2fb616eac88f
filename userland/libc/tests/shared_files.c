/* Writable shared mappings of files: what is written gets into the file, and to others. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

enum { PAGE = 4096, TURNS = 200 };

static char name[] = "/tmp/shared.XXXXXX";

static char *map(int fd, size_t size, off_t offset)
{
	char *p = mmap(0, size, PROT_READ|PROT_WRITE, MAP_SHARED, fd, offset);
	CHECK(p != MAP_FAILED);
	return p;
}

static void lock(int fd, int type)
{
	struct flock whole = { .l_type = type, .l_whence = SEEK_SET };
	CHECK(!fcntl(fd, F_SETLKW, &whole));
}

static char byte_at(int fd, off_t offset)
{
	char c;
	CHECK(pread(fd, &c, 1, offset) == 1);
	return c;
}

static void written_through(int fd)
{
	char *p = map(fd, 3 * PAGE, 0);
	p[0] = 'a';
	p[PAGE + 1] = 'b';
	CHECK(!msync(p, 3 * PAGE, MS_SYNC));
	CHECK(byte_at(fd, 0) == 'a' && byte_at(fd, PAGE + 1) == 'b' && byte_at(fd, 1) == 0);

	/* A part of a mapping may go; the rest is still one. */
	p[PAGE] = 'c';
	CHECK(!munmap(p + PAGE, PAGE));
	CHECK(byte_at(fd, PAGE) == 'c');
	p[1] = 'd';
	p[2 * PAGE] = 'e';
	CHECK(!munmap(p, 3 * PAGE));
	CHECK(byte_at(fd, 1) == 'd' && byte_at(fd, 2 * PAGE) == 'e');

	/* Nothing after the file's end is written. */
	CHECK(!ftruncate(fd, 10));
	p = map(fd, PAGE, 0);
	p[9] = 'f';
	p[10] = 'g';
	CHECK(!munmap(p, PAGE));
	CHECK(byte_at(fd, 9) == 'f' && lseek(fd, 0, SEEK_END) == 10);

	int readable = open(name, O_RDONLY);
	CHECK(readable >= 0);
	CHECK(mmap(0, 10, PROT_WRITE, MAP_SHARED, readable, 0) == MAP_FAILED && errno == EACCES);
	CHECK(!close(readable));
}

/* The descriptor may be closed before the mapping goes, and exit writes too. */
static void written_at_exit(int fd)
{
	CHECK(!ftruncate(fd, PAGE));
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		char *p = map(fd, PAGE, 0);
		CHECK(!close(fd));
		p[5] = 'x';
		exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && !status && byte_at(fd, 5) == 'x');
}

/* Two processes count under a lock, each beside in a byte of its own without one. */
static void count(int fd, int own)
{
	unsigned char *p = (unsigned char *)map(fd, PAGE, 0);
	int *counter = (int *)(p + 512);
	for (int i = 0; i < TURNS; i++) {
		lock(fd, F_WRLCK);
		++*counter;
		++p[own];
		lock(fd, F_UNLCK);
	}
	CHECK(!munmap(p, PAGE));
}

static void exchanged_under_locks(int fd)
{
	CHECK(!ftruncate(fd, 0) && !ftruncate(fd, PAGE));
	pid_t child = fork();
	CHECK(child >= 0);
	int mine = open(name, O_RDWR);
	CHECK(mine >= 0);
	count(mine, child ? 0 : 1);
	if (!child) _exit(0);
	int status;
	CHECK(waitpid(child, &status, 0) == child && !status);
	int *counter = (int *)(map(fd, PAGE, 0) + 512);
	CHECK(*counter == 2 * TURNS);
	CHECK((unsigned char)byte_at(fd, 0) == TURNS && (unsigned char)byte_at(fd, 1) == TURNS);
}

int main(void)
{
	int fd = mkstemp(name);
	CHECK(fd >= 0 && !ftruncate(fd, 3 * PAGE));
	written_through(fd);
	written_at_exit(fd);
	exchanged_under_locks(fd);
	CHECK(!unlink(name));
	return 0;
}
