/* y += alpha * A^T * x: an inner product for each column of A. */

#include "vectors.h"

int CNAME(BLASLONG m, BLASLONG n, BLASLONG unused, FLOAT alpha, FLOAT *a, BLASLONG lda, FLOAT *x,
	  BLASLONG inc_x, FLOAT *y, BLASLONG inc_y, FLOAT *buffer)
{
	for (BLASLONG j = 0; j < n; j++) {
		FLOAT sum = 0;
		if (inc_x == 1)
			sum = product(m, a + j * lda, x);
		else
			for (BLASLONG i = 0; i < m; i++)
				sum += a[i + j * lda] * x[i * inc_x];
		y[j * inc_y] += alpha * sum;
	}
	return 0;
}
