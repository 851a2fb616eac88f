/* strtod and strtof. Where the digits and the power of ten are both exact as floating-point
 * numbers, one multiplication or division rounds correctly, as IEEE arithmetic does. Every other
 * string goes to musl's own scanner, which computes in long double: emulated here, and slow. */
#include <float.h>
#include <stdint.h>
#include <stdlib.h>
#include "floatscan.h"
#include "shgetc.h"
#include "stdio_impl.h"

static long double scan(const char *s, char **end, int precision)
{
	FILE f;
	sh_fromstring(&f, s);
	shlim(&f, 0);
	long double value = __floatscan(&f, precision, 1);
	off_t used = shcnt(&f);
	if (end) *end = used ? (char *)s + used : (char *)s;
	return value;
}

struct decimal {
	uint64_t digits;
	int exponent;
	int negative;
	const char *end;
};

/* All numbers of so many digits fit into digits. */
enum { MAX_DIGITS = 19, MAX_EXPONENT = 9999 };

static inline int is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* Reads digits, at most one point, and an exponent. 0 if it is another kind of number, if it has
 * more digits than fit, or if it is none. */
static inline int read_decimal(const char *s, struct decimal *number)
{
	while (*s == ' ' || (unsigned char)(*s - '\t') < 5) s++;
	number->negative = *s == '-';
	if (*s == '-' || *s == '+') s++;

	const char *first = s;
	/* Leading zeros do not count, and "0x" is a hexadecimal number. */
	while (*s == '0') s++;
	if ((*s | 32) == 'x') return 0;
	uint64_t digits = 0;
	const char *significant = s;
	for (; is_digit(*s); s++) digits = digits * 10 + (*s - '0');
	int count = s - significant, exponent = 0, any = s != first;
	if (count > MAX_DIGITS) return 0;
	if (*s == '.') {
		const char *point = ++s;
		if (!digits) while (*s == '0') s++;
		significant = s;
		for (; is_digit(*s); s++) digits = digits * 10 + (*s - '0');
		if (s - significant > MAX_DIGITS - count || s - point > MAX_EXPONENT) return 0;
		exponent = point - s;
		any |= s != point;
	}
	if (!any) return 0;
	if ((*s | 32) == 'e') {
		const char *e = s + 1;
		int minus = *e == '-', value = 0;
		if (*e == '-' || *e == '+') e++;
		if (is_digit(*e)) {
			for (; is_digit(*e); e++) {
				value = value * 10 + (*e - '0');
				if (value > MAX_EXPONENT) return 0;
			}
			exponent += minus ? -value : value;
			s = e;
		}
	}
	number->digits = digits;
	number->exponent = exponent;
	number->end = s;
	return 1;
}

/* The powers of ten that a double and a float hold exactly. */
static const double double_powers[] = {
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};
static const float float_powers[] = {
	1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f,
};
enum { MAX_DOUBLE_POWER = 22, MAX_FLOAT_POWER = 10 };

double strtod(const char *restrict s, char **restrict end)
{
	struct decimal n;
	if (!read_decimal(s, &n) || n.digits > 1ULL << DBL_MANT_DIG) return scan(s, end, 1);
	double value = n.digits;
	if (n.digits) {
		if (n.exponent > MAX_DOUBLE_POWER || n.exponent < -MAX_DOUBLE_POWER)
			return scan(s, end, 1);
		if (n.exponent < 0) value /= double_powers[-n.exponent];
		else value *= double_powers[n.exponent];
	}
	if (end) *end = (char *)n.end;
	return n.negative ? -value : value;
}

float strtof(const char *restrict s, char **restrict end)
{
	struct decimal n;
	if (!read_decimal(s, &n) || n.digits > 1ULL << FLT_MANT_DIG) return scan(s, end, 0);
	float value = n.digits;
	if (n.digits) {
		if (n.exponent > MAX_FLOAT_POWER || n.exponent < -MAX_FLOAT_POWER)
			return scan(s, end, 0);
		if (n.exponent < 0) value /= float_powers[-n.exponent];
		else value *= float_powers[n.exponent];
	}
	if (end) *end = (char *)n.end;
	return n.negative ? -value : value;
}

long double strtold(const char *restrict s, char **restrict end)
{
	return scan(s, end, 2);
}
