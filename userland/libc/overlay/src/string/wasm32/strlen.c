#include "vector_scan.h"

size_t strlen(const char *string)
{
	const char *p = vector_of(string);
	bytes16 zero = repeat(0);
	unsigned found = equal_bytes(p, zero) & ALL << place_of(string);
	while (!found) found = equal_bytes(p += VECTOR, zero);
	return p + first_of(found) - string;
}
