/* The cosine transform of JPEG, and quantisation, with vectors of 128 bits.
 *
 * Owns the functions of libjpeg-turbo's interface for vector code (jsimddct.h) that work on blocks
 * of 8 x 8. Rules: results are those of jfdctint.c, jidctint.c and jcdctmgr.c, bit for bit,
 * whatever a file contains; what is rare, or cannot be computed in 16 bits, is left to them.
 *
 * A vector holds a row of a block. The C code adds and multiplies in several steps, modulo 2^32.
 * Here each result is a sum of products of a value and a constant, both of 16 bits: the same number
 * modulo 2^32. */

#define JPEG_INTERNALS
#include "jinclude.h"
#include "jpeglib.h"
#include "jdct.h"
#include "jsimddct.h"

#include <wasm_simd128.h>

#define VECTOR_INLINE static inline __attribute__((always_inline))

/* The engine checks at each turn of a loop whether to stop, and an array that a loop indexes stays in
 * memory. */
#define UNROLLED _Pragma("clang loop unroll(full)")

#define CONST_BITS 13
#define PASS1_BITS 2

/* Pairs of lanes of two vectors, from their first or second half. */
#define FIRST16(a, b) wasm_i16x8_shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define SECOND16(a, b) wasm_i16x8_shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define FIRST32(a, b) wasm_i32x4_shuffle(a, b, 0, 4, 1, 5)
#define SECOND32(a, b) wasm_i32x4_shuffle(a, b, 2, 6, 3, 7)
#define FIRST64(a, b) wasm_i64x2_shuffle(a, b, 0, 2)
#define SECOND64(a, b) wasm_i64x2_shuffle(a, b, 1, 3)
#define FIRST8(a, b) \
    wasm_i8x16_shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define SECOND8(a, b) \
    wasm_i8x16_shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* One number of 32 bits for each of the eight lanes of a row. */
typedef struct {
    v128_t first, second;
} Wide;

VECTOR_INLINE Wide pairs(v128_t a, v128_t b)
{
    return (Wide){ FIRST16(a, b), SECOND16(a, b) };
}

/* a x + b y for pairs of x and y. */
VECTOR_INLINE Wide product(Wide xy, int a, int b)
{
    v128_t factors = wasm_i16x8_make(a, b, a, b, a, b, a, b);
    return (Wide){ wasm_i32x4_dot_i16x8(xy.first, factors), wasm_i32x4_dot_i16x8(xy.second, factors) };
}

VECTOR_INLINE Wide sum(Wide a, Wide b)
{
    return (Wide){ wasm_i32x4_add(a.first, b.first), wasm_i32x4_add(a.second, b.second) };
}

VECTOR_INLINE Wide difference(Wide a, Wide b)
{
    return (Wide){ wasm_i32x4_sub(a.first, b.first), wasm_i32x4_sub(a.second, b.second) };
}

VECTOR_INLINE Wide plus(Wide a, int constant)
{
    return sum(a, (Wide){ wasm_i32x4_splat(constant), wasm_i32x4_splat(constant) });
}

/* Without its lowest bits, and as 16 bits. */
VECTOR_INLINE v128_t shifted(Wide a, int bits)
{
    return wasm_i16x8_narrow_i32x4(wasm_i32x4_shr(a.first, bits), wasm_i32x4_shr(a.second, bits));
}

VECTOR_INLINE void transpose(v128_t r[8])
{
    v128_t a0 = FIRST16(r[0], r[1]), a1 = SECOND16(r[0], r[1]);
    v128_t a2 = FIRST16(r[2], r[3]), a3 = SECOND16(r[2], r[3]);
    v128_t a4 = FIRST16(r[4], r[5]), a5 = SECOND16(r[4], r[5]);
    v128_t a6 = FIRST16(r[6], r[7]), a7 = SECOND16(r[6], r[7]);
    v128_t b0 = FIRST32(a0, a2), b1 = SECOND32(a0, a2), b2 = FIRST32(a1, a3), b3 = SECOND32(a1, a3);
    v128_t b4 = FIRST32(a4, a6), b5 = SECOND32(a4, a6), b6 = FIRST32(a5, a7), b7 = SECOND32(a5, a7);
    r[0] = FIRST64(b0, b4), r[1] = SECOND64(b0, b4);
    r[2] = FIRST64(b1, b5), r[3] = SECOND64(b1, b5);
    r[4] = FIRST64(b2, b6), r[5] = SECOND64(b2, b6);
    r[6] = FIRST64(b3, b7), r[7] = SECOND64(b3, b7);
}

/* The odd part, which is the same matrix in both directions. The numbers are the constants of
 * jfdctint.c: cosines with 13 bits after the point. */
VECTOR_INLINE void odd_part(v128_t t0, v128_t t1, v128_t t2, v128_t t3, Wide out[4])
{
    const int z1 = -7373, z2 = -20995, z3 = -16069, z4 = -3196, z5 = 9633;
    Wide a = pairs(t0, t1), b = pairs(t2, t3);
    out[0] = sum(product(a, 2446 + z1 + z3 + z5, z5), product(b, z3 + z5, z1 + z5));
    out[1] = sum(product(a, z5, 16819 + z2 + z4 + z5), product(b, z2 + z5, z4 + z5));
    out[2] = sum(product(a, z3 + z5, z2 + z5), product(b, 25172 + z2 + z3 + z5, z5));
    out[3] = sum(product(a, z1 + z5, z4 + z5), product(b, z5, 12299 + z1 + z4 + z5));
}

/* From samples to coefficients, along the columns of the block. */
VECTOR_INLINE void forward(v128_t r[8], int pass)
{
    const int bits = pass == 1 ? CONST_BITS - PASS1_BITS : CONST_BITS + PASS1_BITS;
    const int half = 1 << (bits - 1);
    v128_t s0 = wasm_i16x8_add(r[0], r[7]), s1 = wasm_i16x8_add(r[1], r[6]);
    v128_t s2 = wasm_i16x8_add(r[2], r[5]), s3 = wasm_i16x8_add(r[3], r[4]);
    v128_t d0 = wasm_i16x8_sub(r[0], r[7]), d1 = wasm_i16x8_sub(r[1], r[6]);
    v128_t d2 = wasm_i16x8_sub(r[2], r[5]), d3 = wasm_i16x8_sub(r[3], r[4]);
    Wide odd[4];
    odd_part(d3, d2, d1, d0, odd);
    r[7] = shifted(plus(odd[0], half), bits);
    r[5] = shifted(plus(odd[1], half), bits);
    r[3] = shifted(plus(odd[2], half), bits);
    r[1] = shifted(plus(odd[3], half), bits);

    v128_t even0 = wasm_i16x8_add(s0, s3), even1 = wasm_i16x8_add(s1, s2);
    Wide rotated = pairs(wasm_i16x8_sub(s1, s2), wasm_i16x8_sub(s0, s3));
    r[2] = shifted(plus(product(rotated, 4433, 4433 + 6270), half), bits);
    r[6] = shifted(plus(product(rotated, 4433 - 15137, 4433), half), bits);
    r[0] = wasm_i16x8_add(even0, even1);
    r[4] = wasm_i16x8_sub(even0, even1);
    UNROLLED
    for (int i = 0; i < 8; i += 4) {
        if (pass == 1)
            r[i] = wasm_i16x8_shl(r[i], PASS1_BITS);
        else
            r[i] = wasm_i16x8_shr(wasm_i16x8_add(r[i], wasm_i16x8_splat(1 << (PASS1_BITS - 1))),
                                  PASS1_BITS);
    }
}

GLOBAL(void) jsimd_fdct_islow(DCTELEM *data)
{
    v128_t r[8];
    UNROLLED
    for (int i = 0; i < 8; i++)
        r[i] = wasm_v128_load(data + 8 * i);
    transpose(r);
    forward(r, 1);
    transpose(r);
    forward(r, 2);
    UNROLLED
    for (int i = 0; i < 8; i++)
        wasm_v128_store(data + 8 * i, r[i]);
}

GLOBAL(void) jsimd_convsamp(JSAMPARRAY sample_data, JDIMENSION start_col, DCTELEM *workspace)
{
    UNROLLED
    for (int i = 0; i < 8; i++) {
        v128_t samples = wasm_u16x8_load8x8(sample_data[i] + start_col);
        wasm_v128_store(workspace + 8 * i, wasm_i16x8_sub(samples, wasm_i16x8_splat(CENTERJSAMPLE)));
    }
}

/* The upper 16 bits of the product of two numbers without sign. */
VECTOR_INLINE v128_t upper_half(v128_t a, v128_t b)
{
    return wasm_u16x8_narrow_i32x4(wasm_u32x4_shr(wasm_u32x4_extmul_low_u16x8(a, b), 16),
                                   wasm_u32x4_shr(wasm_u32x4_extmul_high_u16x8(a, b), 16));
}

/* Divides by multiplication: see compute_reciprocal in jcdctmgr.c, which makes the table. */
GLOBAL(void) jsimd_quantize(JCOEFPTR coef_block, DCTELEM *divisors, DCTELEM *workspace)
{
    UNROLLED
    for (int i = 0; i < 8; i++) {
        v128_t reciprocal = wasm_v128_load(divisors + 8 * i);
        v128_t correction = wasm_v128_load(divisors + DCTSIZE2 + 8 * i);
        v128_t scale = wasm_v128_load(divisors + 2 * DCTSIZE2 + 8 * i);
        v128_t value = wasm_v128_load(workspace + 8 * i);
        v128_t sign = wasm_i16x8_shr(value, 15);
        v128_t positive = wasm_i16x8_add(wasm_i16x8_abs(value), correction);
        v128_t quotient = upper_half(upper_half(positive, reciprocal), scale);
        wasm_v128_store(coef_block + 8 * i, wasm_i16x8_sub(wasm_v128_xor(quotient, sign), sign));
    }
}

/* From coefficients to samples, along the columns of the block. */
VECTOR_INLINE void inverse(v128_t r[8], int bits)
{
    const int one = 1 << CONST_BITS, half = 1 << (bits - 1);
    Wide ends = pairs(r[0], r[4]), middle = pairs(r[2], r[6]);
    Wide t0 = plus(product(ends, one, one), half), t1 = plus(product(ends, one, -one), half);
    Wide t2 = product(middle, 4433, 4433 - 15137), t3 = product(middle, 4433 + 6270, 4433);
    Wide even[4] = { sum(t0, t3), sum(t1, t2), difference(t1, t2), difference(t0, t3) }, odd[4];
    odd_part(r[7], r[5], r[3], r[1], odd);
    UNROLLED
    for (int i = 0; i < 4; i++) {
        r[i] = shifted(sum(even[i], odd[3 - i]), bits);
        r[7 - i] = shifted(difference(even[i], odd[3 - i]), bits);
    }
}

/* The samples of a block that has one colour. */
VECTOR_INLINE void fill(int value, JSAMPARRAY output_buf, JDIMENSION output_col)
{
    /* jidctint.c takes 10 bits of the result, and limits these to what a sample can be. */
    v128_t samples = wasm_i8x16_splat(MIN(MAX((int)((unsigned)value << 22) >> 22, -128), 127) + 128);
    UNROLLED
    for (int i = 0; i < 8; i++)
        wasm_v128_store64_lane(output_buf[i] + output_col, samples, 0);
}

/* The library without vector code has 32 bits for a factor. A damaged file can need more than 16. */
_Static_assert(sizeof(ISLOW_MULT_TYPE) == 4, "compile with -DMULTIPLIER=int");

GLOBAL(void) jsimd_idct_islow(j_decompress_ptr cinfo, jpeg_component_info *compptr,
                              JCOEFPTR coef_block, JSAMPARRAY output_buf, JDIMENSION output_col)
{
    const ISLOW_MULT_TYPE *factors = (ISLOW_MULT_TYPE *)compptr->dct_table;
    v128_t r[8], others = wasm_i16x8_const(0, -1, -1, -1, -1, -1, -1, -1);
    r[0] = wasm_v128_load(coef_block);
    others = wasm_v128_and(others, r[0]);
    UNROLLED
    for (int i = 1; i < 8; i++) {
        r[i] = wasm_v128_load(coef_block + 8 * i);
        others = wasm_v128_or(others, r[i]);
    }
    if (!wasm_v128_any_true(others)) {
        int value = (int)((unsigned)(coef_block[0] * factors[0]) << PASS1_BITS);
        fill((value + (1 << (PASS1_BITS + 2))) >> (PASS1_BITS + 3), output_buf, output_col);
        return;
    }

    /* If the sizes of a column add up to 5900 at most, all that follows fits into 16 bits: the
     * results of the first pass have at most 4 * sqrt(2) times this size. Columns of pictures have
     * less than 4000; a damaged file can have any. */
    v128_t sizes = wasm_i16x8_splat(0);
    UNROLLED
    for (int i = 0; i < 8; i++) {
        v128_t first = wasm_v128_load(factors + 8 * i), second = wasm_v128_load(factors + 8 * i + 4);
        r[i] = wasm_i16x8_narrow_i32x4(wasm_i32x4_mul(wasm_i32x4_extend_low_i16x8(r[i]), first),
                                       wasm_i32x4_mul(wasm_i32x4_extend_high_i16x8(r[i]), second));
        sizes = wasm_u16x8_add_sat(sizes, wasm_i16x8_abs(r[i]));
    }
    if (wasm_v128_any_true(wasm_u16x8_gt(sizes, wasm_i16x8_splat(5900)))) {
        jpeg_idct_islow(cinfo, compptr, coef_block, output_buf, output_col);
        return;
    }

    inverse(r, CONST_BITS - PASS1_BITS);
    transpose(r);
    inverse(r, CONST_BITS + PASS1_BITS + 3);
    UNROLLED
    for (int i = 0; i < 8; i++)
        r[i] = wasm_i16x8_shr(wasm_i16x8_shl(r[i], 6), 6);  /* 10 bits, as in `fill` */

    /* Limit the samples, and transpose them as bytes. */
    v128_t a = wasm_i8x16_narrow_i16x8(r[0], r[4]), b = wasm_i8x16_narrow_i16x8(r[1], r[5]);
    v128_t c = wasm_i8x16_narrow_i16x8(r[2], r[6]), d = wasm_i8x16_narrow_i16x8(r[3], r[7]);
    v128_t e = FIRST8(a, b), f = SECOND8(a, b), g = FIRST8(c, d), h = SECOND8(c, d);
    v128_t left = FIRST16(e, g), right = FIRST16(f, h);
    v128_t left_below = SECOND16(e, g), right_below = SECOND16(f, h);
    v128_t rows[4] = { FIRST32(left, right), SECOND32(left, right),
                       FIRST32(left_below, right_below), SECOND32(left_below, right_below) };
    UNROLLED
    for (int i = 0; i < 4; i++) {
        v128_t samples = wasm_v128_xor(rows[i], wasm_i8x16_splat(-128));
        wasm_v128_store64_lane(output_buf[2 * i] + output_col, samples, 0);
        wasm_v128_store64_lane(output_buf[2 * i + 1] + output_col, samples, 1);
    }
}

/* What this file has, and what it leaves to the rest of the library. */
GLOBAL(int) jsimd_can_convsamp(void) { return 1; }
GLOBAL(int) jsimd_can_fdct_islow(void) { return 1; }
GLOBAL(int) jsimd_can_quantize(void) { return 1; }
GLOBAL(int) jsimd_can_idct_islow(void) { return 1; }

#define LEFT_OUT(can, function, parameters) \
    GLOBAL(int) can(void) { return 0; } \
    GLOBAL(void) function parameters {}

#define IDCT_PARAMETERS \
    (j_decompress_ptr cinfo, jpeg_component_info *compptr, JCOEFPTR coef_block, \
     JSAMPARRAY output_buf, JDIMENSION output_col)

LEFT_OUT(jsimd_can_convsamp_float, jsimd_convsamp_float,
         (JSAMPARRAY sample_data, JDIMENSION start_col, FAST_FLOAT *workspace))
LEFT_OUT(jsimd_can_fdct_ifast, jsimd_fdct_ifast, (DCTELEM *data))
LEFT_OUT(jsimd_can_fdct_float, jsimd_fdct_float, (FAST_FLOAT *data))
LEFT_OUT(jsimd_can_quantize_float, jsimd_quantize_float,
         (JCOEFPTR coef_block, FAST_FLOAT *divisors, FAST_FLOAT *workspace))
LEFT_OUT(jsimd_can_idct_2x2, jsimd_idct_2x2, IDCT_PARAMETERS)
LEFT_OUT(jsimd_can_idct_4x4, jsimd_idct_4x4, IDCT_PARAMETERS)
LEFT_OUT(jsimd_can_idct_ifast, jsimd_idct_ifast, IDCT_PARAMETERS)
LEFT_OUT(jsimd_can_idct_float, jsimd_idct_float, IDCT_PARAMETERS)
