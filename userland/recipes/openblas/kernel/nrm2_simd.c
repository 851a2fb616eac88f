/* The length of a vector. Sums are in double precision for both types. */

#include "vectors.h"
#include <float.h>
#include <math.h>

#ifdef DOUBLE
/* Squares between these lose nothing that matters to underflow or overflow. */
#define SMALLEST 1e-280
#define LARGEST DBL_MAX

/* Slower, for very large and very small numbers, infinity and NaN. */
static FLOAT scaled_length(BLASLONG n, const FLOAT *x, BLASLONG inc_x)
{
	FLOAT largest = 0, sum = 0;
	for (BLASLONG i = 0; i < n; i++) {
		FLOAT size = fabs(x[i * inc_x]);
		if (!(size <= LARGEST))
			largest = isnan(largest) ? largest : size;
		else if (size > largest)
			largest = size;
	}
	if (!(largest <= LARGEST) || largest == 0)
		return largest;
	for (BLASLONG i = 0; i < n; i++)
		sum += (x[i * inc_x] / largest) * (x[i * inc_x] / largest);
	return largest * (FLOAT)sqrt(sum);
}

static double squares(BLASLONG n, const FLOAT *x)
{
	return product(n, x, x);
}
#else
typedef double pair __attribute__((ext_vector_type(2)));
typedef float unaligned_pair __attribute__((ext_vector_type(2), aligned(sizeof(float))));

/* In double precision, squares of single-precision numbers neither overflow nor underflow. */
static double squares(BLASLONG n, const FLOAT *x)
{
	pair sum[4] = { 0, 0, 0, 0 };
	BLASLONG i = 0;
	for (; i + 8 <= n; i += 8)
		for (int j = 0; j < 4; j++) {
			pair two = __builtin_convertvector(*(const unaligned_pair *)(x + i + 2 * j), pair);
			sum[j] += two * two;
		}
	pair all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
	double result = all.x + all.y;
	for (; i < n; i++)
		result += (double)x[i] * x[i];
	return result;
}
#endif

FLOAT CNAME(BLASLONG n, FLOAT *x, BLASLONG inc_x)
{
	double sum = 0;
	if (n <= 0 || inc_x == 0)
		return 0;
	if (inc_x == 1)
		sum = squares(n, x);
	else
		for (BLASLONG i = 0; i < n; i++)
			sum += (double)x[i * inc_x] * x[i * inc_x];
#ifdef DOUBLE
	if (!(sum >= SMALLEST && sum <= LARGEST))
		return scaled_length(n, x, inc_x);
#endif
	return sqrt(sum);
}
