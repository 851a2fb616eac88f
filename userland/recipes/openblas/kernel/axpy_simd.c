/* y += alpha * x */

#include "vectors.h"

int CNAME(BLASLONG n, BLASLONG unused_0, BLASLONG unused_1, FLOAT alpha, FLOAT *x, BLASLONG inc_x,
	  FLOAT *y, BLASLONG inc_y, FLOAT *unused_2, BLASLONG unused_3)
{
	BLASLONG i = 0;
	if (alpha == 0)
		return 0;
	if (inc_x == 1 && inc_y == 1) {
		for (; i + 2 * LANES <= n; i += 2 * LANES) {
			vector low = LOAD(y + i) + alpha * LOAD(x + i);
			vector high = LOAD(y + i + LANES) + alpha * LOAD(x + i + LANES);
			STORE(y + i, low);
			STORE(y + i + LANES, high);
		}
	}
	for (; i < n; i++)
		y[i * inc_y] += alpha * x[i * inc_x];
	return 0;
}
