#include "word_scan.h"

size_t strlen(const char *string)
{
	const char *p = string;
	for (; !is_aligned(p); p++)
		if (!*p) return p - string;
	word zeros;
	while (!(zeros = zero_bytes(*(const word *)p))) p += WORD;
	return p + first_byte(zeros) - string;
}
