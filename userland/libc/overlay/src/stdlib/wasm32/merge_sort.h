/* Sorting by merging, for qsort.c and qsort_nr.c, which define COMPARE(a, b) and what it
 * needs of CONTEXT. Equal elements keep their order, as they do on GNU systems: POSIX does
 * not promise it, but programs lean on it. Needs memory for half of the elements; without
 * it, musl's own sort, which needs none, takes over. */
#include <stdlib.h>
#include <string.h>

/* Runs up to this length are sorted by insertion. */
#define SHORT_RUN 6
/* Scratch space of this size is on the stack. */
#define SMALL 1024

static inline void copy_element(unsigned char *to, const unsigned char *from, size_t width)
{
	if (width == 4) memcpy(to, from, 4);
	else if (width == 8) memcpy(to, from, 8);
	else memcpy(to, from, width);
}

static void insertion_sort(unsigned char *base, size_t count, size_t width,
	unsigned char *scratch, CONTEXT)
{
	for (size_t i = 1; i < count; i++) {
		unsigned char *element = base + i * width, *place = element;
		while (place > base && COMPARE(place - width, element) > 0) place -= width;
		if (place == element) continue;
		copy_element(scratch, element, width);
		memmove(place + width, place, element - place);
		copy_element(place, scratch, width);
	}
}

static void merge_sort(unsigned char *base, size_t count, size_t width,
	unsigned char *scratch, CONTEXT)
{
	if (count <= SHORT_RUN) {
		insertion_sort(base, count, width, scratch, PASS_ON);
		return;
	}
	size_t half = count / 2;
	unsigned char *middle = base + half * width, *end = base + count * width;
	merge_sort(base, half, width, scratch, PASS_ON);
	merge_sort(middle, count - half, width, scratch, PASS_ON);
	if (COMPARE(middle - width, middle) <= 0) return;

	/* The left half moves away, and both are merged into the place of it. */
	memcpy(scratch, base, middle - base);
	unsigned char *left = scratch, *left_end = scratch + (middle - base), *right = middle;
	unsigned char *out = base;
	while (left < left_end && right < end) {
		unsigned char **next = COMPARE(left, right) <= 0 ? &left : &right;
		copy_element(out, *next, width);
		*next += width;
		out += width;
	}
	memcpy(out, left, left_end - left);
}

/* 0 if there is no memory. */
static int sorted_by_merging(void *base, size_t count, size_t width, CONTEXT)
{
	if (count < 2 || !width) return 1;
	size_t needed = (count / 2 + 1) * width;
	unsigned char small[SMALL], *scratch = needed > SMALL ? malloc(needed) : small;
	if (!scratch) return 0;
	merge_sort(base, count, width, scratch, PASS_ON);
	if (scratch != small) free(scratch);
	return 1;
}
