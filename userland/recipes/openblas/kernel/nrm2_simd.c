/* The length of a vector. */

#include "vectors.h"
#include <float.h>
#include <math.h>

/* Squares between these lose nothing that matters to underflow or overflow. */
#ifdef DOUBLE
#define SMALLEST 1e-280
#define LARGEST DBL_MAX
#else
#define SMALLEST 1e-30f
#define LARGEST FLT_MAX
#endif

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

FLOAT CNAME(BLASLONG n, FLOAT *x, BLASLONG inc_x)
{
	FLOAT sum = 0;
	if (n <= 0 || inc_x == 0)
		return 0;
	if (inc_x == 1)
		sum = product(n, x, x);
	else
		for (BLASLONG i = 0; i < n; i++)
			sum += x[i * inc_x] * x[i * inc_x];
	if (sum >= SMALLEST && sum <= LARGEST)
		return sqrt(sum);
	return scaled_length(n, x, inc_x);
}
