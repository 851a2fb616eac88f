/* The inner product of two vectors. */

#include "vectors.h"

FLOAT CNAME(BLASLONG n, FLOAT *x, BLASLONG inc_x, FLOAT *y, BLASLONG inc_y)
{
	FLOAT result = 0;
	if (inc_x == 1 && inc_y == 1)
		return n > 0 ? product(n, x, y) : 0;
	for (BLASLONG i = 0; i < n; i++)
		result += x[i * inc_x] * y[i * inc_y];
	return result;
}
