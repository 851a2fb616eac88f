/* y += alpha * A * x, four columns of A at a time. */

#include "vectors.h"

static void add_columns(BLASLONG m, const FLOAT *a, BLASLONG lda, const FLOAT *by, FLOAT *y)
{
	const FLOAT *b = a + lda, *c = b + lda, *d = c + lda;
	FLOAT by_a = by[0], by_b = by[1], by_c = by[2], by_d = by[3];
	BLASLONG i = 0;
	for (; i + LANES <= m; i += LANES)
		STORE(y + i, LOAD(y + i) + ((by_a * LOAD(a + i) + by_b * LOAD(b + i)) +
					    (by_c * LOAD(c + i) + by_d * LOAD(d + i))));
	for (; i < m; i++)
		y[i] += (by_a * a[i] + by_b * b[i]) + (by_c * c[i] + by_d * d[i]);
}

int CNAME(BLASLONG m, BLASLONG n, BLASLONG unused, FLOAT alpha, FLOAT *a, BLASLONG lda, FLOAT *x,
	  BLASLONG inc_x, FLOAT *y, BLASLONG inc_y, FLOAT *buffer)
{
	BLASLONG j = 0;
	if (inc_y == 1)
		for (; j + 4 <= n; j += 4) {
			FLOAT by[4];
			for (int i = 0; i < 4; i++)
				by[i] = alpha * x[(j + i) * inc_x];
			add_columns(m, a + j * lda, lda, by, y);
		}
	for (; j < n; j++) {
		FLOAT by = alpha * x[j * inc_x];
		for (BLASLONG i = 0; i < m; i++)
			y[i * inc_y] += by * a[i + j * lda];
	}
	return 0;
}
