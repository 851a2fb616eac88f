/* The checks for one type; check_blas.c includes this once for each. LETTER begins the names of the
 * type's functions. */

#define BLAS(name) JOINED(cblas_, LETTER, name)
#define OWN(name) JOINED(LETTER, _, name)
#ifdef IS_COMPLEX
#define FACTOR const void *
#define PASS(factor) &(factor)
#define LAST_FORM CONJUGATED
#else
#define FACTOR NUMBER
#define PASS(factor) (factor)
#define LAST_FORM TRANSPOSED
#endif

void BLAS(gemm)(int, int, int, int, int, int, FACTOR, const void *, int, const void *, int, FACTOR,
		void *, int);
void BLAS(trmm)(int, int, int, int, int, int, int, FACTOR, const void *, int, void *, int);
void BLAS(trsm)(int, int, int, int, int, int, int, FACTOR, const void *, int, void *, int);
void BLAS(gemv)(int, int, int, int, FACTOR, const void *, int, const void *, int, FACTOR, void *,
		int);
void BLAS(syrk)(int, int, int, int, int, FACTOR, const void *, int, FACTOR, void *, int);
void BLAS(axpy)(int, FACTOR, const void *, int, void *, int);

static NUMBER OWN(a)[SIZE], OWN(b)[SIZE], OWN(c)[SIZE], OWN(before)[SIZE];

static NUMBER OWN(number)(void)
{
	NUMBER number = random_number();
#ifdef IS_COMPLEX
	number += I * random_number();
#endif
	return number;
}

static void OWN(fill)(void)
{
	for (int i = 0; i < SIZE; i++) {
		OWN(a)[i] = OWN(number)();
		OWN(b)[i] = OWN(number)();
		OWN(before)[i] = OWN(c)[i] = OWN(number)();
	}
}

/* Element i, j of a matrix in the given form. */
static NUMBER OWN(at)(const NUMBER *matrix, int form, int i, int j)
{
	NUMBER number = form == PLAIN ? matrix[i + j * SIDE] : matrix[j + i * SIDE];
#ifdef IS_COMPLEX
	if (form == CONJUGATED)
		number = conj(number);
#endif
	return number;
}

static void OWN(gemm)(int m, int n, int k, int form_a, int form_b, int factors)
{
	NUMBER alpha = factors ? OWN(number)() : 1, beta = factors == 2 ? OWN(number)() : factors;
	int sizes[] = { m, n, k, form_a * 1000 + form_b };
	OWN(fill)();
	BLAS(gemm)(BY_COLUMNS, form_a, form_b, m, n, k, PASS(alpha), OWN(a), SIDE, OWN(b), SIDE,
		   PASS(beta), OWN(c), SIDE);
	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			NUMBER expected = OWN(before)[i + j * SIDE];
			if (i < m && j < n) {
				NUMBER sum = 0;
				for (int l = 0; l < k; l++)
					sum += OWN(at)(OWN(a), form_a, i, l) * OWN(at)(OWN(b), form_b, l, j);
				expected = alpha * sum + beta * expected;
			}
			compare("gemm", NAME, sizes, OWN(c)[i + j * SIDE], expected, TOLERANCE);
		}
}

/* Multiply by a triangular matrix, and solve for what was multiplied. */
static void OWN(triangular)(int m, int n, int side, int half, int form, int diagonal)
{
	static NUMBER full[SIZE];
	NUMBER alpha = OWN(number)() + 2, inverse = 1 / alpha;
	int k = side == LEFT ? m : n, sizes[] = { m, n, side * 1000 + half, form * 1000 + diagonal };
	OWN(fill)();
	memset(full, 0, sizeof full);
	for (int i = 0; i < k; i++)
		for (int j = 0; j < k; j++) {
			NUMBER *element = &OWN(a)[i + j * SIDE];
			*element = i == j ? *element + 2 : *element / 16;
			if (i == j)
				full[i + j * SIDE] = diagonal == UNIT_DIAGONAL ? 1 : *element;
			else if ((half == UPPER) == (i < j))
				full[i + j * SIDE] = *element;
		}
	memcpy(OWN(c), OWN(b), sizeof OWN(c));
	BLAS(trmm)(BY_COLUMNS, side, half, form, diagonal, m, n, PASS(alpha), OWN(a), SIDE, OWN(c), SIDE);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			NUMBER sum = 0;
			for (int l = 0; l < k; l++)
				sum += side == LEFT ? OWN(at)(full, form, i, l) * OWN(b)[l + j * SIDE]
						    : OWN(b)[i + l * SIDE] * OWN(at)(full, form, l, j);
			compare("trmm", NAME, sizes, OWN(c)[i + j * SIDE], alpha * sum, TOLERANCE);
		}
	BLAS(trsm)(BY_COLUMNS, side, half, form, diagonal, m, n, PASS(inverse), OWN(a), SIDE, OWN(c), SIDE);
	for (int i = 0; i < SIZE; i++)
		compare("trsm", NAME, sizes, OWN(c)[i], OWN(b)[i], 10 * TOLERANCE);
}

static int OWN(start)(int count, int step)
{
	return step < 0 ? (1 - count) * step : 0;
}

static void OWN(vectors)(int m, int n, int form, int step_x, int step_y)
{
	NUMBER alpha = OWN(number)(), beta = OWN(number)();
	int rows = form == PLAIN ? m : n, k = form == PLAIN ? n : m;
	int sizes[] = { m, n, form, step_x * 1000 + step_y };
	const NUMBER *x = OWN(b) + OWN(start)(k, step_x);
	int y = OWN(start)(rows, step_y);
	OWN(fill)();
	BLAS(gemv)(BY_COLUMNS, form, m, n, PASS(alpha), OWN(a), SIDE, OWN(b), step_x, PASS(beta), OWN(c),
		   step_y);
	for (int i = 0; i < rows; i++) {
		NUMBER sum = 0;
		for (int l = 0; l < k; l++)
			sum += OWN(at)(OWN(a), form, i, l) * x[l * step_x];
		compare("gemv", NAME, sizes, OWN(c)[y + i * step_y],
			alpha * sum + beta * OWN(before)[y + i * step_y], TOLERANCE);
	}
	memcpy(OWN(c), OWN(before), sizeof OWN(c));
	x = OWN(b) + OWN(start)(m, step_x);
	y = OWN(start)(m, step_y);
	BLAS(axpy)(m, PASS(alpha), OWN(b), step_x, OWN(c), step_y);
	for (int i = 0; i < m; i++)
		compare("axpy", NAME, sizes, OWN(c)[y + i * step_y],
			OWN(before)[y + i * step_y] + alpha * x[i * step_x], TOLERANCE);
}

static void OWN(symmetric)(int n, int k, int half, int form)
{
	NUMBER alpha = OWN(number)(), beta = OWN(number)();
	int sizes[] = { n, k, half, form };
	OWN(fill)();
	BLAS(syrk)(BY_COLUMNS, half, form, n, k, PASS(alpha), OWN(a), SIDE, PASS(beta), OWN(c), SIDE);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			NUMBER expected = OWN(before)[i + j * SIDE], sum = 0;
			for (int l = 0; l < k; l++)
				sum += OWN(at)(OWN(a), form, i, l) * OWN(at)(OWN(a), form, j, l);
			if (i == j || (half == UPPER) == (i < j))
				expected = alpha * sum + beta * expected;
			compare("syrk", NAME, sizes, OWN(c)[i + j * SIDE], expected, TOLERANCE);
		}
}

static void JOINED(check, _, LETTER)(void)
{
	static const int steps[] = { 1, 2, -1, 3, -2 };
	const int forms = LAST_FORM - PLAIN + 1;
	for (int m = 1, turn = 0; m <= 40; m += m < 10 ? 1 : 3)
		for (int n = 1; n <= 40; n += n < 10 ? 1 : 3)
			for (int k = 1; k <= 40; k += k < 10 ? 2 : 5, turn++)
				OWN(gemm)(m, n, k, PLAIN + turn % forms, PLAIN + turn / forms % forms, turn % 3);
	for (int m = 1; m <= 14; m++)
		for (int n = 1; n <= 14; n++)
			for (int form = PLAIN; form <= LAST_FORM; form++) {
				for (int i = 0; i < 5; i++)
					OWN(vectors)(m, n, form, steps[i], steps[(m + i) % 5]);
				for (int half = UPPER; half <= LOWER; half++)
					for (int side = LEFT; side <= RIGHT; side++)
						OWN(triangular)(m, n, side, half, form, ANY_DIAGONAL + (m + n) % 2);
			}
	for (int n = 1; n <= 22; n++)
		for (int k = 1; k <= 9; k++)
			for (int half = UPPER; half <= LOWER; half++)
				for (int form = PLAIN; form <= TRANSPOSED; form++)
					OWN(symmetric)(n, k, half, form);
}

#undef BLAS
#undef OWN
#undef FACTOR
#undef PASS
#undef LAST_FORM
#undef LETTER
#undef NAME
#undef NUMBER
#undef TOLERANCE
