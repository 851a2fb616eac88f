/* memcpy, memmove and memset of every short length, at every alignment and overlap, touch exactly
 * the bytes that they should. */
#include "check.h"

enum { LONGEST = 300, ROOM = 4 * LONGEST };

static unsigned char found[ROOM], expected[ROOM];

static void refill(void)
{
	for (int i = 0; i < ROOM; i++) found[i] = expected[i] = i * 7 + i / 256;
}

static void move_bytes(int to, int from, int size)
{
	static unsigned char taken[LONGEST];
	for (int i = 0; i < size; i++) taken[i] = expected[from + i];
	for (int i = 0; i < size; i++) expected[to + i] = taken[i];
}

int main(void)
{
	/* Not constants: the compiler must not replace the calls. */
	void *(*volatile copy)(void *, const void *, size_t) = memcpy;
	void *(*volatile move)(void *, const void *, size_t) = memmove;
	void *(*volatile fill)(void *, int, size_t) = memset;

	for (int size = 0; size < LONGEST; size++) {
		for (int from = 300; from < 316; from += 5) {
			refill();
			CHECK(copy(found + 1, found + from, size) == found + 1);
			move_bytes(1, from, size);
			CHECK(!memcmp(found, expected, ROOM));
			for (int distance = -size - 1; distance <= size + 1; distance += 1 + size / 40) {
				if (from + distance < 0) continue;
				refill();
				CHECK(move(found + from + distance, found + from, size) == found + from + distance);
				move_bytes(from + distance, from, size);
				CHECK(!memcmp(found, expected, ROOM));
			}
			refill();
			CHECK(fill(found + from, 0x181 + size, size) == found + from);
			for (int i = 0; i < size; i++) expected[from + i] = 0x81 + size;
			CHECK(!memcmp(found, expected, ROOM));
		}
	}
	return 0;
}
