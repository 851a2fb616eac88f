/* Loads, stores and sums of 128-bit vectors of FLOAT. */

#include "common.h"

#define LANES ((int)(16 / sizeof(FLOAT)))

typedef FLOAT vector __attribute__((ext_vector_type(16 / sizeof(FLOAT))));
typedef FLOAT unaligned_vector
    __attribute__((ext_vector_type(16 / sizeof(FLOAT)), aligned(sizeof(FLOAT))));

#define LOAD(p) (*(const unaligned_vector *)(p))
#define STORE(p, value) (*(unaligned_vector *)(p) = (value))

static inline FLOAT total(vector v)
{
#ifdef DOUBLE
	return v.x + v.y;
#else
	return (v.x + v.z) + (v.y + v.w);
#endif
}

/* The inner product of two arrays. */
static inline FLOAT product(BLASLONG n, const FLOAT *x, const FLOAT *y)
{
	vector sum[4] = { 0, 0, 0, 0 };
	BLASLONG i = 0;
	for (; i + 4 * LANES <= n; i += 4 * LANES)
		for (int j = 0; j < 4; j++)
			sum[j] += LOAD(x + i + j * LANES) * LOAD(y + i + j * LANES);
	FLOAT result = total((sum[0] + sum[1]) + (sum[2] + sum[3]));
	for (; i < n; i++)
		result += x[i] * y[i];
	return result;
}
