/* qsort; see merge_sort.h. */
#define _GNU_SOURCE
#include <stdlib.h>

typedef int (*comparison)(const void *, const void *);

#define CONTEXT comparison compare
#define PASS_ON compare
#define COMPARE(a, b) compare(a, b)
#include "merge_sort.h"

hidden void __smoothsort_r(void *, size_t, size_t, int (*)(const void *, const void *, void *), void *);

static int call_comparison(const void *a, const void *b, void *compare)
{
	return ((comparison)compare)(a, b);
}

void qsort(void *base, size_t count, size_t width, comparison compare)
{
	if (!sorted_by_merging(base, count, width, compare))
		__smoothsort_r(base, count, width, call_comparison, (void *)compare);
}
