/* qsort_r; see merge_sort.h. */
#define _GNU_SOURCE
#include <stdlib.h>

typedef int (*comparison)(const void *, const void *, void *);

#define CONTEXT comparison compare, void *argument
#define PASS_ON compare, argument
#define COMPARE(a, b) compare(a, b, argument)
#include "merge_sort.h"

hidden void __smoothsort_r(void *, size_t, size_t, comparison, void *);

void __qsort_r(void *base, size_t count, size_t width, comparison compare, void *argument)
{
	if (!sorted_by_merging(base, count, width, compare, argument))
		__smoothsort_r(base, count, width, compare, argument);
}

weak_alias(__qsort_r, qsort_r);
