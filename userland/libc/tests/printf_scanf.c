/* Formatting and parsing of numbers, long double included. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include "check.h"

static void prints(const char *expected, const char *format, ...)
{
	char buffer[256];
	__builtin_va_list arguments;
	__builtin_va_start(arguments, format);
	vsnprintf(buffer, sizeof buffer, format, arguments);
	__builtin_va_end(arguments);
	if (strcmp(buffer, expected)) fprintf(stderr, "got %s, expected %s\n", buffer, expected);
	CHECK(!strcmp(buffer, expected));
}

int main(void)
{
	prints("-42 2a 0x2a 52", "%d %x %#x %o", -42, 42, 42, 42);
	prints("18446744073709551615", "%" PRIu64, UINT64_MAX);
	prints("3.142 1e+100 inf nan", "%.3f %g %f %f", 3.14159, 1e100, INFINITY, fabs(NAN));
	prints("0.1000000000000000055511151231257827", "%.34f", 0.1);
	prints("1.189731495357231765e+4932", "%.18Le", LDBL_MAX);
	prints("0x1.8p+1", "%a", 3.0);
	prints("  abc|abc  |ab", "%5s|%-5s|%.2s", "abc", "abc", "abc");

	CHECK(strtod("0.1", 0) == 0.1);
	CHECK(strtod("1.7976931348623157e308", 0) == DBL_MAX);
	CHECK(strtod("4.9e-324", 0) == 4.9e-324);
	CHECK(strtod("0x1.8p1", 0) == 3.0);
	CHECK(isinf(strtod("1e400", 0)) && errno == ERANGE);
	CHECK(strtoll("-9223372036854775808", 0, 10) == INT64_MIN);
	CHECK(strtoul("zz", 0, 36) == 35 * 36 + 35);

	int n;
	double d;
	char word[8];
	CHECK(sscanf("12 2.5 word", "%d %lf %7s", &n, &d, word) == 3);
	CHECK(n == 12 && d == 2.5 && !strcmp(word, "word"));
	return 0;
}
