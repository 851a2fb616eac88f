/* For each line of standard input: the bits of strtod and strtof, and how much they have read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
	static char line[4096];
	while (fgets(line, sizeof line, stdin)) {
		char *double_end, *float_end;
		double d = strtod(line, &double_end);
		float f = strtof(line, &float_end);
		uint64_t double_bits;
		uint32_t float_bits;
		memcpy(&double_bits, &d, sizeof d);
		memcpy(&float_bits, &f, sizeof f);
		printf("%016llx %d %08x %d\n", (unsigned long long)double_bits, (int)(double_end - line),
		       (unsigned)float_bits, (int)(float_end - line));
	}
	return 0;
}
