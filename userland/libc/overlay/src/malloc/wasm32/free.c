#include <stdlib.h>
#include "../small_blocks.h"

void free(void *p)
{
	if (!p) return;
	if (is_small(p)) small_free(p);
	else __libc_free(p);
}
