/* exp and log of arrays, and sums, with vectors of 128 bits.
 *
 * numpy has vectors for exp and log only with instructions of other processors. exp in double
 * precision takes the C library's table and steps, so its results are those of the C library, bit
 * for bit; the others are within 1.01 units of the last place. A number for which the steps do not
 * hold (infinite, not a number, too large, too small) is left to the C library, whatever its
 * neighbours are. Elements that are apart, and the last ones, are computed in the same way.
 *
 * The engine checks at each turn of a loop whether to stop, so a turn takes four vectors. */

#ifndef VECTOR_LOOPS_H
#define VECTOR_LOOPS_H

#include "numpy/npy_common.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <wasm_simd128.h>

typedef double Doubles __attribute__((vector_size(16), aligned(8)));
typedef int64_t Longs __attribute__((vector_size(16), aligned(8)));
typedef float Floats __attribute__((vector_size(16), aligned(4)));
typedef int32_t Ints __attribute__((vector_size(16), aligned(4)));

#define VECTOR_INLINE static inline __attribute__((always_inline))

/* The sum of 8 to 128 numbers side by side, in the order of numpy's own loop: eight sums. */
VECTOR_INLINE npy_double
sum_of_doubles(const npy_double *a, npy_intp n)
{
    const Doubles *v = (const Doubles *)a;
    Doubles r0 = v[0], r1 = v[1], r2 = v[2], r3 = v[3];
    npy_intp i = 8;
#pragma clang loop unroll_count(4)
    for (; i < n - (n % 8); i += 8) {
        v = (const Doubles *)(a + i);
        r0 += v[0];
        r1 += v[1];
        r2 += v[2];
        r3 += v[3];
    }
    npy_double sum = ((r0[0] + r0[1]) + (r1[0] + r1[1])) + ((r2[0] + r2[1]) + (r3[0] + r3[1]));
    for (; i < n; i++) {
        sum += a[i];
    }
    return sum;
}

VECTOR_INLINE npy_float
sum_of_floats(const npy_float *a, npy_intp n)
{
    const Floats *v = (const Floats *)a;
    Floats r0 = v[0], r1 = v[1];
    npy_intp i = 8;
#pragma clang loop unroll_count(4)
    for (; i < n - (n % 8); i += 8) {
        v = (const Floats *)(a + i);
        r0 += v[0];
        r1 += v[1];
    }
    npy_float sum = ((r0[0] + r0[1]) + (r0[2] + r0[3])) + ((r1[0] + r1[1]) + (r1[2] + r1[3]));
    for (; i < n; i++) {
        sum += a[i];
    }
    return sum;
}

#endif

/* One file has these. */
#if defined(DEFINE_VECTOR_LOOPS) && !defined(VECTOR_LOOPS_DEFINED)
#define VECTOR_LOOPS_DEFINED

/* Set by a loop of this file when all its operands were ordinary: its results are finite. */
extern _Thread_local int block_is_ordinary;

#define VECTORS 4

/* Part of the C library. */
extern const struct {
    double per_ln2, shift, minus_ln2_high, minus_ln2_low, poly[4], exp2_shift, exp2_poly[5];
    struct {
        uint64_t tail, scale;
    } table[128];
} __exp_data;

VECTOR_INLINE Longs exp_is_ordinary_double(Doubles x)
{
    return (Doubles)wasm_f64x2_abs((v128_t)x) < 512.0;
}

VECTOR_INLINE Doubles exp_of_double(Doubles x)
{
    const double *c = __exp_data.poly;
    Doubles k = x * __exp_data.per_ln2 + __exp_data.shift;
    Longs bits = (Longs)k;
    uint32_t first = wasm_i32x4_extract_lane((v128_t)bits, 0);
    uint32_t second = wasm_i32x4_extract_lane((v128_t)bits, 2);
    k -= __exp_data.shift;
    Doubles r = x + k * __exp_data.minus_ln2_high + k * __exp_data.minus_ln2_low;
    Longs a = *(const Longs *)&__exp_data.table[first & 127];
    Longs b = *(const Longs *)&__exp_data.table[second & 127];
    Doubles tail = (Doubles)__builtin_shufflevector(a, b, 0, 2);
    Doubles scale = (Doubles)(__builtin_shufflevector(a, b, 1, 3) + (bits << 45));
    Doubles r2 = r * r;
    return scale + scale * (tail + r + r2 * (c[0] + r * c[1]) + r2 * r2 * (c[2] + r * c[3]));
}

/* log(2^k (1 + f)) = k ln 2 + 2 atanh(f / (2 + f)), where 1 + f is between sqrt(1/2) and sqrt(2). */
VECTOR_INLINE Longs log_is_ordinary_double(Doubles x)
{
    return (x > 0x1p-1021) & (x < 0x1p1023);  /* Other bounds become a test that has no vectors. */
}

VECTOR_INLINE Doubles log_of_double(Doubles x)
{
    Longs offset = (Longs)x - 0x3fe6a09e667f3bcd;  /* the square root of 1/2 */
    Doubles f = (Doubles)((Longs)x - (offset & (int64_t)0xfff0000000000000)) - 1.0;
    Ints high = __builtin_shufflevector((Ints)offset, (Ints)offset, 1, 3, 1, 3);
    Doubles k = (Doubles)wasm_f64x2_convert_low_i32x4((v128_t)(high >> 20));
    Doubles s = f / (2.0 + f), z = s * s, w = z * z, half = 0.5 * f * f;
    Doubles odd = z * (0x1.5555555555558p-1 + w * (0x1.2492492dfd86cp-2 +
                       w * (0x1.7462b91b8df65p-3 + w * 0x1.2b5f68a50d903p-3)));
    Doubles even = w * (0x1.9999999995273p-2 + w * (0x1.c71c62d5e53e0p-3 + w * 0x1.39fdcceb4bb45p-3));
    /* The first part of ln 2 has 32 bits, so its product with k is exact. */
    return k * 0x1.62e42fee00000p-1 -
           ((half - (s * (half + (odd + even)) + k * 0x1.a39ef35793c76p-33)) - f);
}

VECTOR_INLINE Ints exp_is_ordinary_float(Floats x)
{
    return (Floats)wasm_f32x4_abs((v128_t)x) < 87.0f;
}

VECTOR_INLINE Floats exp_of_float(Floats x)
{
    Floats k = x * 0x1.715476p+0f + 0x1.8p23f;
    Ints bits = (Ints)k << 23;
    k -= 0x1.8p23f;
    Floats r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
    Floats p = 0x1.000000p-1f + r * (0x1.5554dcp-3f + r * (0x1.555518p-5f +
               r * (0x1.120be2p-7f + r * 0x1.6d117cp-10f)));
    return (Floats)((Ints)(1.0f + (r + r * r * p)) + bits);
}

VECTOR_INLINE Ints log_is_ordinary_float(Floats x)
{
    return (x > 0x1p-125f) & (x < 0x1p127f);
}

VECTOR_INLINE Floats log_of_float(Floats x)
{
    Ints offset = (Ints)x - 0x3f3504f3;  /* the square root of 1/2 */
    Floats f = (Floats)((Ints)x - (offset & (int32_t)0xff800000)) - 1.0f;
    Floats k = (Floats)wasm_f32x4_convert_i32x4((v128_t)(offset >> 23));
    Floats s = f / (2.0f + f), z = s * s, half = 0.5f * f * f;
    Floats rest = z * (0x1.555556p-1f + z * (0x1.9999ecp-2f + z * (0x1.245c28p-2f + z * 0x1.ddd4dap-3f)));
    return k * 0x1.62e3p-1f - ((half - (s * (half + rest) + k * 0x1.2fefa2p-17f)) - f);
}

/* VECTORS vectors from `from` to `to`, which may be the same. Whether all are ordinary. */
#define DEFINE_LOOP(name, type, vector, mask, all_true, is_ordinary, of, one)                   \
    VECTOR_INLINE int name##_group_##type(const type *from, type *to)                                  \
    {                                                                                           \
        enum { LANES = 16 / sizeof(type), COUNT = VECTORS * LANES };                            \
        vector x[VECTORS];                                                                      \
        mask ordinary = ~(mask){0};                                                             \
        _Pragma("clang loop unroll(full)") for (int i = 0; i < VECTORS; i++) {                  \
            x[i] = *(const vector *)(from + i * LANES);                                         \
            ordinary &= is_ordinary(x[i]);                                                      \
        }                                                                                       \
        if (__builtin_expect(all_true((v128_t)ordinary), 1)) {                                  \
            _Pragma("clang loop unroll(full)") for (int i = 0; i < VECTORS; i++) {              \
                *(vector *)(to + i * LANES) = of(x[i]);                                         \
            }                                                                                   \
            return 1;                                                                           \
        }                                                                                       \
        name##_with_special_##type(from, to);                                                   \
        return 0;                                                                               \
    }                                                                                           \
    static void name##_loop_##type(char **args, npy_intp count, const npy_intp *steps)          \
    {                                                                                           \
        enum { COUNT = VECTORS * 16 / sizeof(type) };                                           \
        const char *from = args[0];                                                             \
        char *to = args[1];                                                                     \
        int ordinary = 1;                                                                       \
        if (steps[0] == sizeof(type) && steps[1] == sizeof(type)) {                             \
            for (; count >= COUNT; count -= COUNT) {                                            \
                ordinary &= name##_group_##type((const type *)from, (type *)to);                \
                from += COUNT * sizeof(type);                                                   \
                to += COUNT * sizeof(type);                                                     \
            }                                                                                   \
        }                                                                                       \
        while (count > 0) {                                                                     \
            type some[COUNT];                                                                   \
            int these = count < COUNT ? (int)count : COUNT;                                     \
            for (int i = 0; i < COUNT; i++) {                                                   \
                some[i] = one;                                                                  \
            }                                                                                   \
            for (int i = 0; i < these; i++) {                                                   \
                some[i] = *(const type *)(from + i * steps[0]);                                 \
            }                                                                                   \
            ordinary &= name##_group_##type(some, some);                                        \
            for (int i = 0; i < these; i++) {                                                   \
                *(type *)(to + i * steps[1]) = some[i];                                         \
            }                                                                                   \
            from += these * steps[0];                                                           \
            to += these * steps[1];                                                             \
            count -= these;                                                                     \
        }                                                                                       \
        block_is_ordinary = ordinary;                                                           \
    }

/* The same where some are not ordinary. */
#define DEFINE_SPECIAL(name, type, vector, mask, is_ordinary, of, scalar)                       \
    __attribute__((noinline, cold)) static void                                                 \
    name##_with_special_##type(const type *from, type *to)                                      \
    {                                                                                           \
        enum { LANES = 16 / sizeof(type) };                                                     \
        for (int i = 0; i < VECTORS; i++) {                                                     \
            vector x = *(const vector *)(from + i * LANES), y = of(x);                          \
            mask ordinary = is_ordinary(x);                                                     \
            for (int lane = 0; lane < LANES; lane++) {                                          \
                to[i * LANES + lane] = ordinary[lane] ? y[lane] : scalar(x[lane]);              \
            }                                                                                   \
        }                                                                                       \
    }

#define DEFINE_BOTH(name, type, vector, mask, all_true, suffix, scalar, one)                    \
    DEFINE_SPECIAL(name, type, vector, mask, name##_is_ordinary_##suffix, name##_of_##suffix,   \
                   scalar)                                                                      \
    DEFINE_LOOP(name, type, vector, mask, all_true, name##_is_ordinary_##suffix,                \
                name##_of_##suffix, one)

DEFINE_BOTH(exp, npy_double, Doubles, Longs, wasm_i64x2_all_true, double, exp, 1.0)
DEFINE_BOTH(log, npy_double, Doubles, Longs, wasm_i64x2_all_true, double, log, 1.0)
DEFINE_BOTH(exp, npy_float, Floats, Ints, wasm_i32x4_all_true, float, expf, 1.0f)
DEFINE_BOTH(log, npy_float, Floats, Ints, wasm_i32x4_all_true, float, logf, 1.0f)

#endif
