/* Compares OpenBLAS with plain loops: all four types, odd sizes, transposed and strided operands.
 * Prints the first differences, and how many there were. */

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BY_COLUMNS = 102, PLAIN = 111, TRANSPOSED, CONJUGATED, UPPER = 121, LOWER };
enum { ANY_DIAGONAL = 131, UNIT_DIAGONAL, LEFT = 141, RIGHT };
enum { SIDE = 64, SIZE = SIDE * SIDE };

static int differences;

static double random_number(void)
{
	static unsigned long state = 1;
	state = state * 1103515245u + 12345u;
	return (state >> 8 & 0xffff) / 32768.0 - 1;
}

static void compare(const char *what, char type, const int *sizes, double complex found,
		    double complex expected, double tolerance)
{
	if (found == expected || cabs(found - expected) <= tolerance * (1 + cabs(expected)))
		return;
	if (differences++ < 20)
		printf("%c%s(%d, %d, %d, %d): %g%+gi instead of %g%+gi\n", type, what, sizes[0], sizes[1],
		       sizes[2], sizes[3], creal(found), cimag(found), creal(expected), cimag(expected));
}

#define JOINED_(a, b, c) a##b##c
#define JOINED(a, b, c) JOINED_(a, b, c)

#define LETTER s
#define NAME 's'
#define NUMBER float
#define TOLERANCE 2e-4
#include "check_type.h"

#define LETTER d
#define NAME 'd'
#define NUMBER double
#define TOLERANCE 1e-12
#include "check_type.h"

#define IS_COMPLEX
#define LETTER c
#define NAME 'c'
#define NUMBER float complex
#define TOLERANCE 2e-4
#include "check_type.h"

#define LETTER z
#define NAME 'z'
#define NUMBER double complex
#define TOLERANCE 1e-12
#include "check_type.h"

double cblas_ddot(int, const double *, int, const double *, int);
double cblas_dnrm2(int, const double *, int);
float cblas_sdot(int, const float *, int, const float *, int);
float cblas_snrm2(int, const float *, int);

static void check_sums(void)
{
	static double a[256], b[256];
	static float c[256], d[256];
	for (int i = 0; i < 256; i++) {
		c[i] = a[i] = random_number();
		d[i] = b[i] = random_number();
	}
	for (int n = 0; n <= 70; n++)
		for (int x = 1; x <= 3; x++)
			for (int y = 1; y <= 3; y++) {
				double dot = 0, squares = 0;
				int sizes[] = { n, x, y, 0 };
				for (int i = 0; i < n; i++) {
					dot += a[i * x] * b[i * y];
					squares += a[i * x] * a[i * x];
				}
				compare("dot", 'd', sizes, cblas_ddot(n, a, x, b, y), dot, 1e-12);
				compare("dot", 's', sizes, cblas_sdot(n, c, x, d, y), dot, 1e-4);
				compare("nrm2", 'd', sizes, cblas_dnrm2(n, a, x), sqrt(squares), 1e-12);
				compare("nrm2", 's', sizes, cblas_snrm2(n, c, x), sqrt(squares), 1e-4);
			}
	const double special[][4] = {
		{ 3e200, 4e200, 5e200 }, { 3e-200, 4e-200, 5e-200 }, { 0, 0, 0 }, { 1, INFINITY, INFINITY },
	};
	for (int i = 0; i < 4; i++)
		if (!(fabs(cblas_dnrm2(2, special[i], 1) / special[i][2] - 1) < 1e-12) &&
		    cblas_dnrm2(2, special[i], 1) != special[i][2])
			differences++, printf("nrm2 of special numbers, %d\n", i);
	static float one_large[10001];
	for (int i = 0; i < 10001; i++)
		one_large[i] = i ? 1 : 1e4;
	if (cblas_snrm2(10001, one_large, 1) != 10000.5f)
		differences++, printf("nrm2 of one large number and many small ones\n");
	const float extreme[][4] = { { 3e37, 4e37, 5e37 }, { 3e-40, 4e-40, 5e-40 } };
	for (int i = 0; i < 2; i++)
		if (!(fabs(cblas_snrm2(2, extreme[i], 1) / extreme[i][2] - 1) < 1e-4))
			differences++, printf("nrm2 of extreme numbers, %d\n", i);
	const double nan[] = { INFINITY, NAN, 1 };
	if (!isnan(cblas_dnrm2(3, nan, 1)))
		differences++, printf("nrm2 of NaN\n");
}

int main(void)
{
	check_s();
	check_d();
	check_c();
	check_z();
	check_sums();
	printf("%d differences\n", differences);
	return 0;
}
