/* There is no name service daemon: what /etc does not list is not found. */
#include <stdio.h>
#include <string.h>
#include "../nscd.h"

FILE *__nscd_query(int32_t request, const char *key, int32_t *answer, size_t size, int *swap)
{
	*swap = 0;
	memset(answer, 0, size);
	answer[0] = NSCDVERSION;
	return fopen("/dev/null", "re");
}
