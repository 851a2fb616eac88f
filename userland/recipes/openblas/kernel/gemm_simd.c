/* Matrix products with 128-bit vectors, for all four types: C += alpha * A * B, and, with
 * TRMMKERNEL, C = alpha * A * B where A (LEFT) or B is triangular.
 *
 * OpenBLAS packs A into panels of up to GEMM_UNROLL_M rows and B into panels of up to
 * GEMM_UNROLL_N columns; a rest becomes panels of half the size, a quarter, and so on. A tile is
 * the product of two panels. Its sums stay in registers: there are sixteen for vectors, so a full
 * tile has eight sums, and needs the others for operands.
 *
 * A complex tile is computed as if its parts were real numbers, so it has the sums of all four
 * products of parts; they are combined at the end. */

#include "vectors.h"

#define INLINE static inline __attribute__((always_inline))
/* In a function of their own, the sums and pointers of a tile get the registers. */
#define ALONE static __attribute__((noinline))
#define UNROLL _Pragma("clang loop unroll(full)")
/* Steps of the loop of a tile between two checks whether the guest must stop. The sums are in memory
 * during a check: 8 steps take 1.1 times as long as 32. */
#if defined(COMPLEX) || defined(TRMMKERNEL)
#define STEPS 8
#else
#define STEPS 32
#endif
/* Rows and columns of a full tile, in real numbers. */
#define ROWS ((int)(GEMM_UNROLL_M * COMPSIZE))
#define COLUMNS ((int)(GEMM_UNROLL_N * COMPSIZE))

typedef struct {
	FLOAT real, imaginary;
} scalar;

INLINE void store_vector(FLOAT *to, vector value)
{
#ifndef TRMMKERNEL
	value += LOAD(to);
#endif
	STORE(to, value);
}

INLINE void store(FLOAT *to, FLOAT value)
{
#ifdef TRMMKERNEL
	*to = value;
#else
	*to += value;
#endif
}

/* Put `sums` (rows x columns, column after column) into the tile at `c`. */
INLINE void put(int rows, int columns, scalar alpha, const FLOAT *sums, FLOAT *c, BLASLONG ldc)
{
#ifndef COMPLEX
	for (int j = 0; j < columns; j++)
		for (int i = 0; i < rows; i++)
			store(c + i + j * ldc, alpha.real * sums[i + j * rows]);
#else
/* The first letter stands for A, the second for B; C and R: conjugated. */
#if defined(CN) || defined(CT) || defined(RN) || defined(RT)
	const FLOAT sign_a = -1, sign_b = 1;
#elif defined(NC) || defined(TC) || defined(NR) || defined(TR)
	const FLOAT sign_a = 1, sign_b = -1;
#elif defined(CC) || defined(CR) || defined(RC) || defined(RR)
	const FLOAT sign_a = -1, sign_b = -1;
#else
	const FLOAT sign_a = 1, sign_b = 1;
#endif
	for (int j = 0; j < columns; j += 2)
		for (int i = 0; i < rows; i += 2) {
			const FLOAT *by_real = sums + i + j * rows, *by_imaginary = by_real + rows;
			FLOAT real = by_real[0] - sign_a * sign_b * by_imaginary[1];
			FLOAT imaginary = sign_a * by_real[1] + sign_b * by_imaginary[0];
			FLOAT *to = c + i + j / 2 * ldc;
			store(to, alpha.real * real - alpha.imaginary * imaginary);
			store(to + 1, alpha.real * imaginary + alpha.imaginary * real);
		}
#endif
}

INLINE vector exchanged(vector v, int by)
{
#ifdef DOUBLE
	return by ? v.yx : v;
#else
	return by == 0 ? v : by == 1 ? v.yxwz : by == 2 ? v.zwxy : v.wzyx;
#endif
}

/* Turn LANES sums with exchanged lanes into LANES columns. */
INLINE void untangle(vector *sum)
{
#ifdef DOUBLE
	vector a = sum[0], b = sum[1];
	sum[0] = __builtin_shufflevector(a, b, 0, 3);
	sum[1] = __builtin_shufflevector(b, a, 0, 3);
#else
	vector a = __builtin_shufflevector(sum[0], sum[1], 0, 5, 2, 7);
	vector b = __builtin_shufflevector(sum[1], sum[0], 0, 5, 2, 7);
	vector c = __builtin_shufflevector(sum[2], sum[3], 0, 5, 2, 7);
	vector d = __builtin_shufflevector(sum[3], sum[2], 0, 5, 2, 7);
	sum[0] = __builtin_shufflevector(a, c, 0, 1, 6, 7);
	sum[1] = __builtin_shufflevector(b, d, 0, 1, 6, 7);
	sum[2] = __builtin_shufflevector(c, a, 0, 1, 6, 7);
	sum[3] = __builtin_shufflevector(d, b, 0, 1, 6, 7);
#endif
}

/* A tile of whole vectors, `high` in a column and `wide` in a row, both constants.
 *
 * There are LANES sums for each pair of vectors of A and B. For the first, B is as it is, for the
 * others its lanes are exchanged: lane l of sum r has products of lane l of A and lane l ^ r of B.
 * Copying each number of B to all lanes would take more instructions. */
INLINE void vector_tile(int high, int wide, BLASLONG k, scalar alpha, const FLOAT *a,
			const FLOAT *b, FLOAT *c, BLASLONG ldc)
{
	vector sum[2][8];
	UNROLL for (int i = 0; i < high; i++)
		UNROLL for (int j = 0; j < wide * LANES; j++)
			sum[i][j] = 0;
	/* The engine's compiler moves loads to the front of a basic block, and computes at its end. So
	 * each step is a block of its own: it ends with a branch out of the loop. */
	while (k > 0) {
		/* Otherwise the optimiser adds offsets that the loads could contain. */
		__asm__("" : "+r"(a), "+r"(b));
		UNROLL for (int step = 0; step < STEPS; step++) {
			vector left[2], right[4];
			UNROLL for (int i = 0; i < high; i++)
				left[i] = LOAD(a + (step * high + i) * LANES);
			UNROLL for (int j = 0; j < wide; j++)
				right[j] = LOAD(b + (step * wide + j) * LANES);
			UNROLL for (int j = 0; j < wide * LANES; j++)
				UNROLL for (int i = 0; i < high; i++)
					sum[i][j] += left[i] * exchanged(right[j / LANES], j % LANES);
			if (--k == 0)
				goto done;
		}
		a += STEPS * high * LANES;
		b += STEPS * wide * LANES;
	}
done:
	UNROLL for (int i = 0; i < high; i++)
		UNROLL for (int j = 0; j < wide; j++)
			untangle(&sum[i][j * LANES]);
#ifndef COMPLEX
	UNROLL for (int j = 0; j < wide * LANES; j++)
		UNROLL for (int i = 0; i < high; i++)
			store_vector(c + i * LANES + j * ldc, alpha.real * sum[i][j]);
#else
	FLOAT sums[ROWS * COLUMNS];
	UNROLL for (int j = 0; j < wide * LANES; j++)
		UNROLL for (int i = 0; i < high; i++)
			STORE(sums + (j * high + i) * LANES, sum[i][j]);
	put(high * LANES, wide * LANES, alpha, sums, c, ldc);
#endif
}

ALONE void full_tile(BLASLONG k, scalar alpha, const FLOAT *a, const FLOAT *b, FLOAT *c,
		     BLASLONG ldc)
{
	vector_tile(ROWS / LANES, COLUMNS / LANES, k, alpha, a, b, c, ldc);
}

ALONE void half_tile(BLASLONG k, scalar alpha, const FLOAT *a, const FLOAT *b, FLOAT *c,
		     BLASLONG ldc)
{
	vector_tile(ROWS / LANES / 2, COLUMNS / LANES, k, alpha, a, b, c, ldc);
}

/* A full panel of A and a narrow one of B. */
INLINE void narrow_tile(int columns, BLASLONG k, scalar alpha, const FLOAT *a, const FLOAT *b,
			FLOAT *c, BLASLONG ldc)
{
	vector sum[COLUMNS][2];
	FLOAT sums[ROWS * COLUMNS];
	UNROLL for (int j = 0; j < columns; j++)
		sum[j][0] = sum[j][1] = 0;
	for (; k > 0; k--, a += ROWS, b += columns)
		UNROLL for (int j = 0; j < columns; j++)
			UNROLL for (int i = 0; i < 2; i++)
				sum[j][i] += LOAD(a + i * LANES) * b[j];
	UNROLL for (int j = 0; j < columns; j++)
		UNROLL for (int i = 0; i < 2; i++)
			STORE(sums + j * ROWS + i * LANES, sum[j][i]);
	put(ROWS, columns, alpha, sums, c, ldc);
}

ALONE void narrow_tile_2(BLASLONG k, scalar alpha, const FLOAT *a, const FLOAT *b, FLOAT *c,
			 BLASLONG ldc)
{
	narrow_tile(2, k, alpha, a, b, c, ldc);
}

ALONE void narrow_tile_1(BLASLONG k, scalar alpha, const FLOAT *a, const FLOAT *b, FLOAT *c,
			 BLASLONG ldc)
{
	narrow_tile(1, k, alpha, a, b, c, ldc);
}

/* A tile of any size. With one row the compiler uses vectors along the columns. */
INLINE void small_tile(int rows, int columns, BLASLONG k, scalar alpha, const FLOAT *a,
		       const FLOAT *b, FLOAT *c, BLASLONG ldc)
{
	FLOAT sums[ROWS * COLUMNS];
	for (int i = 0; i < rows * columns; i++)
		sums[i] = 0;
	for (; k > 0; k--, a += rows, b += columns)
		for (int j = 0; j < columns; j++)
			for (int i = 0; i < rows; i++)
				sums[i + j * rows] += a[i] * b[j];
	put(rows, columns, alpha, sums, c, ldc);
}

ALONE void row_tile(BLASLONG k, scalar alpha, const FLOAT *a, const FLOAT *b, FLOAT *c,
		    BLASLONG ldc)
{
	small_tile(1, COLUMNS, k, alpha, a, b, c, ldc);
}

ALONE void other_tile(int rows, int columns, BLASLONG k, scalar alpha, const FLOAT *a,
		      const FLOAT *b, FLOAT *c, BLASLONG ldc)
{
	small_tile(rows, columns, k, alpha, a, b, c, ldc);
}

/* `rows` and `columns` are real numbers. */
INLINE void tile(int rows, int columns, BLASLONG k, scalar alpha, const FLOAT *a, const FLOAT *b,
		 FLOAT *c, BLASLONG ldc)
{
	if (rows == ROWS && columns == COLUMNS)
		full_tile(k, alpha, a, b, c, ldc);
	else if (rows == ROWS / 2 && columns == COLUMNS)
		half_tile(k, alpha, a, b, c, ldc);
	else if (rows == ROWS && columns == 2)
		narrow_tile_2(k, alpha, a, b, c, ldc);
	else if (rows == ROWS && columns == 1)
		narrow_tile_1(k, alpha, a, b, c, ldc);
	else if (rows == 1 && columns == COLUMNS)
		row_tile(k, alpha, a, b, c, ldc);
	else
		other_tile(rows, columns, k, alpha, a, b, c, ldc);
}

/* The size of the next panel when `rest` rows or columns are left. */
INLINE BLASLONG panel(BLASLONG rest, BLASLONG full)
{
	while (full > rest)
		full /= 2;
	return full;
}

int CNAME(BLASLONG m, BLASLONG n, BLASLONG k, FLOAT alpha_real,
#ifdef COMPLEX
	  FLOAT alpha_imaginary,
#endif
	  FLOAT *a, FLOAT *b, FLOAT *c, BLASLONG ldc
#ifdef TRMMKERNEL
	  , BLASLONG offset
#endif
)
{
	scalar alpha = { .real = alpha_real };
#ifdef COMPLEX
	alpha.imaginary = alpha_imaginary;
#endif
#ifdef TRMMKERNEL
#ifdef LEFT
	const int left = 1;
#else
	const int left = 0;
#endif
#ifdef TRANSA
	const int from_diagonal = !left;
#else
	const int from_diagonal = left;
#endif
	BLASLONG diagonal = -offset;
#endif
	for (BLASLONG columns, j = 0; j < n; j += columns) {
		const FLOAT *rows_of_a = a;
		columns = panel(n - j, GEMM_UNROLL_N);
#ifdef TRMMKERNEL
		if (left)
			diagonal = offset;
#endif
		for (BLASLONG rows, i = 0; i < m; i += rows) {
			BLASLONG first = 0, length = k;
			rows = panel(m - i, GEMM_UNROLL_M);
#ifdef TRMMKERNEL
			/* Outside this part the panels are zero. */
			if (from_diagonal) {
				first = diagonal;
				length = k - diagonal;
			} else {
				length = diagonal + (left ? rows : columns);
			}
#endif
			tile(rows * COMPSIZE, columns * COMPSIZE, length, alpha,
			     rows_of_a + first * rows * COMPSIZE, b + first * columns * COMPSIZE,
			     c + (i + j * ldc) * COMPSIZE, ldc * COMPSIZE);
			rows_of_a += rows * k * COMPSIZE;
#ifdef TRMMKERNEL
			if (left)
				diagonal += rows;
#endif
		}
		b += columns * k * COMPSIZE;
#ifdef TRMMKERNEL
		if (!left)
			diagonal += columns;
#endif
	}
	return 0;
}
