/* Searching and comparing blocks: every start, length and place of the byte. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"

enum { ROOM = 80, LONGEST = 50 };

static char room[ROOM] __attribute__((__aligned__(16)));

/* A byte just outside the block must not be found, one inside must, the first or last. */
static void search(size_t start, size_t size)
{
	for (size_t at = 0; at < start + size + 18; at++) {
		memset(room, 'x', ROOM);
		room[at] = 'y';
		char *inside = at >= start && at < start + size ? room + at : 0;
		CHECK(memchr(room + start, 'y', size) == inside);
		CHECK(memrchr(room + start, 'y', size) == inside);
		if (!inside || at + 2 >= start + size) continue;
		room[at + 2] = 'y';
		CHECK(memchr(room + start, 'y', size) == room + at);
		CHECK(memrchr(room + start, 'y', size) == room + at + 2);
	}
}

static void measure(size_t start, size_t size)
{
	memset(room, 'x', ROOM);
	room[start + size] = 0;
	CHECK(strlen(room + start) == size);
	CHECK(strchrnul(room + start, 'y') == room + start + size);
	CHECK(strchr(room + start, 'y') == 0);
	CHECK(strchr(room + start, 0) == room + start + size);
	if (start) room[start - 1] = 0;
	CHECK(strlen(room + start) == size);
	if (!size) return;
	room[start + size / 2] = 'y';
	CHECK(strchrnul(room + start, 'y') == room + start + size / 2);
}

static void compare(size_t start, size_t size)
{
	static char other[ROOM];
	memset(room, 'x', ROOM);
	memset(other, 'x', ROOM);
	CHECK(memcmp(room + start, other + 3, size) == 0);
	for (size_t at = 0; at < size; at++) {
		room[start + at] = (char)0xf0;
		CHECK(memcmp(room + start, other + 3, size) > 0);
		CHECK(memcmp(other + 3, room + start, size) < 0);
		other[3 + at] = (char)0xf1;
		CHECK(memcmp(room + start, other + 3, size) < 0);
		room[start + at] = other[3 + at] = 'x';
	}
	room[start + size] = 'z';
	CHECK(memcmp(room + start, other + 3, size) == 0);
}

int main(void)
{
	for (size_t start = 0; start < 17; start++)
		for (size_t size = 0; size < LONGEST - 4; size++) {
			search(start, size < 30 ? size : 30);
			measure(start, size);
			compare(start, size);
		}
	memset(room, 'x', ROOM);
	room[40] = 'y';
	CHECK(memchr(room + 1, 'y', SIZE_MAX) == room + 40);
	/* The last bytes of the memory: nothing after them may be read. */
	size_t end = __builtin_wasm_memory_size(0) * 65536UL;
	char *last = (char *)(end - 5);
	memset(last, 'x', 5);
	CHECK(memchr(last, 'y', 5) == 0);
	CHECK(memrchr(last, 'y', 5) == 0);
	last[4] = 0;
	CHECK(strlen(last) == 4);
	return 0;
}
