#include "word_scan.h"

char *__strchrnul(const char *string, int byte)
{
	const char *p = string;
	char wanted = byte;
	for (; !is_aligned(p); p++)
		if (!*p || *p == wanted) return (char *)p;
	word pattern = repeat(wanted), found;
	for (;; p += WORD) {
		word w = *(const word *)p;
		if ((found = zero_bytes(w) | zero_bytes(w ^ pattern))) break;
	}
	for (; *p && *p != wanted; p++);
	return (char *)p;
}

__attribute__((__weak__, __alias__("__strchrnul")))
char *strchrnul(const char *, int);
