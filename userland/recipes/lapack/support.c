/* Routines of LAPACK that ask Fortran about numbers or strings, in C. */
#include <float.h>

#include "f2c.h"

/* Properties of floating-point numbers, by the first letter of their names. */
#define MACHINE(kind, eps, least, greatest, digits, min_exponent, max_exponent) \
	switch (*name & ~0x20) {                                                    \
	case 'E': return (kind)(eps / 2);                                           \
	case 'S': return least;                                                     \
	case 'B': return 2;                                                         \
	case 'P': return eps;                                                       \
	case 'N': return digits;                                                    \
	case 'R': return 1;                                                         \
	case 'M': return min_exponent;                                              \
	case 'U': return least;                                                     \
	case 'L': return max_exponent;                                              \
	case 'O': return greatest;                                                  \
	default: return 0;                                                          \
	}

real slamch_(char *name)
{
	MACHINE(real, FLT_EPSILON, FLT_MIN, FLT_MAX, FLT_MANT_DIG, FLT_MIN_EXP, FLT_MAX_EXP)
}

doublereal dlamch_(char *name)
{
	MACHINE(doublereal, DBL_EPSILON, DBL_MIN, DBL_MAX, DBL_MANT_DIG, DBL_MIN_EXP, DBL_MAX_EXP)
}

/* A sum that no compiler may simplify. */
real slamc3_(real *a, real *b) { return *(volatile real *)a + *(volatile real *)b; }

doublereal dlamc3_(doublereal *a, doublereal *b)
{
	return *(volatile doublereal *)a + *(volatile doublereal *)b;
}

/* The size of a work space as a floating-point number that is not smaller. */
real sroundup_lwork__(integer *size)
{
	real result = *size;
	return (double)result < *size ? result * (1 + FLT_EPSILON) : result;
}

doublereal droundup_lwork__(integer *size) { return *size; }

/* The place of the largest element, counted from 1; elements that are no numbers do not count. */
#define PLACE_OF_LARGEST                                                 \
	integer place = *count > 0;                                          \
	for (integer at = 1; at <= *count; at++)                             \
		if (values[at - 1] > values[place - 1] || values[place - 1] != values[place - 1]) place = at; \
	return place;

integer ismxlc_(integer *count, real *values)
{
	PLACE_OF_LARGEST
}

integer idmxlc_(integer *count, doublereal *values)
{
	PLACE_OF_LARGEST
}

char chla_transtype_(integer *kind)
{
	return *kind >= 111 && *kind <= 113 ? "NTC"[*kind - 111] : 'X';
}

#undef xerbla_
int xerbla_(char *name, integer *argument, ftnlen length);

void lapack_xerbla_(char *name, integer *argument, ftnlen length)
{
	xerbla_(name, argument, length);
}

void xerbla_array_(char *letters, integer *count, integer *argument)
{
	char name[33];
	ftnlen length = min(max(*count, 0), 32);
	memcpy(name, letters, length);
	name[length] = 0;
	xerbla_(name, argument, length);
}
