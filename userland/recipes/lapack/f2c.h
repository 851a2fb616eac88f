/* What C code that f2c wrote includes: its types, and its runtime as inline functions.
 *
 * An INTEGER, a LOGICAL and the length of a string are an int, as in the BLAS. */
#ifndef WASMSAND_F2C_H
#define WASMSAND_F2C_H

#include <complex.h>
#include <math.h>
#include <string.h>
#undef I

typedef int integer;
typedef int logical;
typedef int ftnlen;
typedef float real;
typedef double doublereal;
typedef struct { real r, i; } complex_pair;
typedef struct { doublereal r, i; } doublecomplex;
#undef complex
#define complex complex_pair
typedef char *address;
typedef logical (*L_fp)();
typedef int (*U_fp)();
typedef int (*S_fp)();

/* The BLAS defines it with a result, unlike other subroutines: see support.c. */
#define xerbla_ lapack_xerbla_

#define TRUE_ 1
#define FALSE_ 0
#define VOID void
#define abs(x) ((x) >= 0 ? (x) : -(x))
#define dabs(x) (doublereal)fabs(x)
#define min(a, b) ((a) <= (b) ? (a) : (b))
#define max(a, b) ((a) >= (b) ? (a) : (b))
#define dmin(a, b) (doublereal)min(a, b)
#define dmax(a, b) (doublereal)max(a, b)

static inline double d_imag(doublecomplex *z) { return z->i; }
static inline double r_imag(complex *z) { return z->i; }
static inline double d_sign(doublereal *a, doublereal *b) { return copysign(*a, *b); }
static inline double r_sign(real *a, real *b) { return copysignf(*a, *b); }
static inline double d_lg10(doublereal *x) { return log10(*x); }
static inline double r_lg10(real *x) { return log10(*x); }
static inline integer i_nint(real *x) { return (integer)roundf(*x); }
static inline integer i_dnnt(doublereal *x) { return (integer)round(*x); }
static inline double z_abs(doublecomplex *z) { return hypot(z->r, z->i); }
static inline double c_abs(complex *z) { return hypot(z->r, z->i); }

static inline void d_cnjg(doublecomplex *result, doublecomplex *z)
{
	*result = (doublecomplex){z->r, -z->i};
}

static inline void r_cnjg(complex *result, complex *z)
{
	*result = (complex){z->r, -z->i};
}

/* The quotient without an overflow where the result is none. */
static inline void z_div(doublecomplex *result, doublecomplex *a, doublecomplex *b)
{
	doublereal ratio, divisor, re = a->r, im = a->i;
	if (fabs(b->r) <= fabs(b->i)) {
		ratio = b->r / b->i;
		divisor = b->i * (1 + ratio * ratio);
		*result = (doublecomplex){(re * ratio + im) / divisor, (im * ratio - re) / divisor};
	} else {
		ratio = b->i / b->r;
		divisor = b->r * (1 + ratio * ratio);
		*result = (doublecomplex){(re + im * ratio) / divisor, (im - re * ratio) / divisor};
	}
}

static inline void c_div(complex *result, complex *a, complex *b)
{
	doublecomplex x = {a->r, a->i}, y = {b->r, b->i}, z;
	z_div(&z, &x, &y);
	*result = (complex){z.r, z.i};
}

static inline void z_sqrt(doublecomplex *result, doublecomplex *z)
{
	_Complex double root = csqrt(CMPLX(z->r, z->i));
	*result = (doublecomplex){creal(root), cimag(root)};
}

static inline void c_sqrt(complex *result, complex *z)
{
	_Complex float root = csqrtf(CMPLXF(z->r, z->i));
	*result = (complex){crealf(root), cimagf(root)};
}

static inline void z_exp(doublecomplex *result, doublecomplex *z)
{
	doublereal size = exp(z->r);
	*result = (doublecomplex){size * cos(z->i), size * sin(z->i)};
}

static inline void c_exp(complex *result, complex *z)
{
	doublereal size = exp(z->r);
	*result = (complex){size * cos(z->i), size * sin(z->i)};
}

static inline double pow_dd(doublereal *base, doublereal *power) { return pow(*base, *power); }

static inline double pow_di(doublereal *base, integer *power)
{
	unsigned rest = *power < 0 ? -(unsigned)*power : (unsigned)*power;
	doublereal factor = *power < 0 ? 1 / *base : *base, result = 1;
	for (; rest; rest >>= 1, factor *= factor)
		if (rest & 1) result *= factor;
	return result;
}

static inline double pow_ri(real *base, integer *power)
{
	doublereal wide = *base;
	return pow_di(&wide, power);
}

static inline integer pow_ii(integer *base, integer *power)
{
	if (*power < 0) return *base == 1 ? 1 : *base == -1 ? (*power & 1 ? -1 : 1) : 0;
	integer result = 1, factor = *base;
	for (unsigned rest = *power; rest; rest >>= 1, factor *= factor)
		if (rest & 1) result *= factor;
	return result;
}

static inline void pow_zi(doublecomplex *result, doublecomplex *base, integer *power)
{
	static doublecomplex one = {1, 0};
	unsigned rest = *power < 0 ? -(unsigned)*power : (unsigned)*power;
	doublecomplex factor = *base, product = one;
	if (*power < 0) z_div(&factor, &one, base);
	for (; rest; rest >>= 1) {
		doublereal re = factor.r, im = factor.i;
		if (rest & 1)
			product = (doublecomplex){product.r * re - product.i * im, product.r * im + product.i * re};
		factor = (doublecomplex){re * re - im * im, 2 * re * im};
	}
	*result = product;
}

static inline void pow_ci(complex *result, complex *base, integer *power)
{
	doublecomplex wide = {base->r, base->i}, product;
	pow_zi(&product, &wide, power);
	*result = (complex){product.r, product.i};
}

/* Strings: the shorter one counts as if it ended with spaces. */
static inline integer i_len(char *string, ftnlen length) { return length; }

static inline void s_copy(char *to, char *from, ftnlen to_length, ftnlen from_length)
{
	ftnlen both = min(to_length, from_length);
	memmove(to, from, both);
	memset(to + both, ' ', to_length - both);
}

static inline integer s_cmp(char *a, char *b, ftnlen a_length, ftnlen b_length)
{
	for (ftnlen at = 0; at < a_length || at < b_length; at++) {
		unsigned char x = at < a_length ? a[at] : ' ', y = at < b_length ? b[at] : ' ';
		if (x != y) return x - y;
	}
	return 0;
}

static inline void s_cat(char *to, char *parts[], ftnlen lengths[], ftnlen *count, ftnlen to_length)
{
	for (ftnlen number = 0; number < *count; number++) {
		ftnlen taken = min(to_length, lengths[number]);
		memmove(to, parts[number], taken);
		to += taken;
		to_length -= taken;
	}
	memset(to, ' ', to_length);
}

#endif
