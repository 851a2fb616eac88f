#include "vector_scan.h"

char *__strchrnul(const char *string, int byte)
{
	const char *p = vector_of(string);
	bytes16 zero = repeat(0), pattern = repeat(byte);
	unsigned found = (equal_bytes(p, zero) | equal_bytes(p, pattern)) & ALL << place_of(string);
	while (!found) {
		p += VECTOR;
		found = equal_bytes(p, zero) | equal_bytes(p, pattern);
	}
	return (char *)p + first_of(found);
}

__attribute__((__weak__, __alias__("__strchrnul")))
char *strchrnul(const char *, int);
