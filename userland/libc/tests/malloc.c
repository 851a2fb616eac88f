/* The heap: sizes, alignment, contents over realloc, exhaustion without a trap. */
#include <malloc.h>
#include <stdint.h>
#include "check.h"

static unsigned seed = 1;

static unsigned next(void)
{
	return seed = seed * 1103515245 + 12345, seed >> 8;
}

static void churn(void)
{
	enum { SLOTS = 500 };
	static struct { unsigned char *memory; size_t size; } slot[SLOTS];
	for (int turn = 0; turn < 100000; turn++) {
		int i = next() % SLOTS;
		size_t size = next() % (next() % 50 ? 600 : 300000);
		unsigned char tag = i;
		for (size_t k = 0; k < slot[i].size; k += 97) CHECK(slot[i].memory[k] == tag);
		if (next() % 3) {
			unsigned char *moved = realloc(slot[i].memory, size + 1);
			CHECK(moved);
			slot[i].memory = moved;
			slot[i].size = size + 1;
			memset(moved, tag, size + 1);
		} else {
			free(slot[i].memory);
			slot[i].memory = 0;
			slot[i].size = 0;
		}
	}
	for (int i = 0; i < SLOTS; i++) free(slot[i].memory);
}

int main(void)
{
	CHECK((uintptr_t)malloc(1) % 16 == 0 || (uintptr_t)malloc(1) % 8 == 0);
	unsigned char *zeroed = calloc(1000, 1000);
	for (int i = 0; i < 1000000; i++) CHECK(!zeroed[i]);
	memset(zeroed, 1, 1000000);
	free(zeroed);
	zeroed = calloc(1000, 1000);
	for (int i = 0; i < 1000000; i++) CHECK(!zeroed[i]);
	free(zeroed);

	void *aligned;
	CHECK(!posix_memalign(&aligned, 4096, 100) && (uintptr_t)aligned % 4096 == 0);
	CHECK(malloc_usable_size(aligned) >= 100);

	void *volatile refused;
	refused = malloc(-1);
	CHECK(!refused && errno == ENOMEM);
	refused = calloc(0x10000, 0x10001);
	CHECK(!refused);
	churn();

	/* Take all there is, then let go: the program must go on. */
	void *list = 0, *block;
	while ((block = malloc(16 << 20))) *(void **)block = list, list = block;
	CHECK(errno == ENOMEM);
	while (list) block = *(void **)list, free(list), list = block;
	CHECK(malloc(32 << 20));
	return 0;
}
