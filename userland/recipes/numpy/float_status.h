/* Finds out which floating-point errors a loop of a ufunc met.
 *
 * Processors set a flag when a number is divided by zero, when a result is too large, and when it is
 * not defined; WebAssembly has no such flags. So the results are looked at: one that is infinite
 * though all its operands are finite, or not a number though no operand is, comes from an error.
 * numpy's own functions on float, double and complex numbers are watched; underflow is not found.
 *
 * Results are checked in blocks while they are in the nearest cache. If a block is written over its
 * operands, and these had infinities or NaNs, nothing is reported for it: a warning may be
 * missing, but none is wrong. */

#ifndef FLOAT_STATUS_H
#define FLOAT_STATUS_H

#include "numpy/npy_math.h"
#include "numpy/ufuncobject.h"

#include <string.h>

/* A loop of vector_loops.h has seen that its results are finite. */
extern _Thread_local int block_is_ordinary;

/* What an infinite result of finite operands means. */
typedef enum {
    NOT_WATCHED,
    TOO_LARGE,
    AT_POLE,
    BY_SECOND,  /* divided by zero if the second operand is zero, else too large */
    OF_FIRST,   /* a negative power of zero if the first operand is zero, else too large */
} WatchedKind;

#define BLOCK 1024

static inline WatchedKind
watched_kind(const char *name)
{
    static const struct {
        const char *name;
        WatchedKind kind;
    } all[] = {
            {"add", TOO_LARGE},          {"subtract", TOO_LARGE},  {"multiply", TOO_LARGE},
            {"divide", BY_SECOND},       {"floor_divide", BY_SECOND}, {"remainder", BY_SECOND},
            {"fmod", BY_SECOND},         {"divmod", BY_SECOND},    {"power", OF_FIRST},
            {"float_power", OF_FIRST},   {"square", TOO_LARGE},    {"reciprocal", AT_POLE},
            {"sqrt", TOO_LARGE},         {"exp", TOO_LARGE},       {"exp2", TOO_LARGE},
            {"expm1", TOO_LARGE},        {"log", AT_POLE},         {"log2", AT_POLE},
            {"log10", AT_POLE},          {"log1p", AT_POLE},       {"sin", TOO_LARGE},
            {"cos", TOO_LARGE},          {"tan", TOO_LARGE},       {"arcsin", TOO_LARGE},
            {"arccos", TOO_LARGE},       {"sinh", TOO_LARGE},      {"cosh", TOO_LARGE},
            {"arccosh", TOO_LARGE},      {"arctanh", AT_POLE},     {"hypot", TOO_LARGE},
            {"ldexp", TOO_LARGE},        {"true_divide", BY_SECOND},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return all[i].kind;
        }
    }
    return NOT_WATCHED;
}

/* Numbers of a type in one element, 0 if the type is not watched. */
static inline int
parts_of(int type)
{
    return type == NPY_FLOAT || type == NPY_DOUBLE     ? 1
           : type == NPY_CFLOAT || type == NPY_CDOUBLE ? 2
                                                       : 0;
}

static inline int
is_single(int type)
{
    return type == NPY_FLOAT || type == NPY_CFLOAT;
}

/* Whether one of `count` numbers that lie side by side is infinite or not a number. The engine checks
 * at each turn of a loop whether to stop, so a turn takes eight vectors. */
#define DEFINE_ANY_NOT_FINITE(name, type, mask_type)                                  \
    static inline int name(const type *numbers, npy_intp count)                       \
    {                                                                                 \
        typedef type vector __attribute__((vector_size(16), aligned(sizeof(type))));  \
        typedef mask_type mask __attribute__((vector_size(16)));                      \
        const npy_intp lanes = 16 / sizeof(type);                                     \
        const vector infinity = (vector){0} + (type)NPY_INFINITY;                     \
        mask finite = ~(mask){0};                                                     \
        npy_intp i = 0;                                                               \
        int found = 0;                                                                \
        for (; i + 8 * lanes <= count; i += 8 * lanes) {                              \
            _Pragma("clang loop unroll(full)") for (int j = 0; j < 8; j++) {          \
                vector v = *(const vector *)(numbers + i + j * lanes);                \
                finite &= (v < infinity) & (v > -infinity);                           \
            }                                                                         \
        }                                                                             \
        for (int j = 0; j < lanes; j++) {                                             \
            found |= finite[j] == 0;                                                  \
        }                                                                             \
        for (; i < count; i++) {                                                      \
            found |= !npy_isfinite(numbers[i]);                                       \
        }                                                                             \
        return found;                                                                 \
    }

DEFINE_ANY_NOT_FINITE(any_float_not_finite, npy_float, npy_int32)
DEFINE_ANY_NOT_FINITE(any_double_not_finite, npy_double, npy_int64)
#undef DEFINE_ANY_NOT_FINITE

static inline int
any_not_finite(const char *data, npy_intp count, int single)
{
    return single ? any_float_not_finite((const npy_float *)data, count)
                  : any_double_not_finite((const npy_double *)data, count);
}

/* The same for elements that are `stride` bytes apart. */
static inline int
block_is_suspect(const char *data, npy_intp count, npy_intp stride, int type)
{
    int parts = parts_of(type), single = is_single(type);
    npy_intp size = parts * (single ? 4 : 8);
    if (stride == size) {
        return any_not_finite(data, count * parts, single);
    }
    if (stride == 0) {
        return any_not_finite(data, parts, single);
    }
    for (npy_intp i = 0; i < count; i++) {
        if (any_not_finite(data + i * stride, parts, single)) {
            return 1;
        }
    }
    return 0;
}

typedef struct {
    int infinite, nan, zero;
} Nature;

static inline Nature
nature_of(const char *element, int type)
{
    Nature nature = {0, 0, 1};
    for (int part = 0; part < parts_of(type); part++) {
        double value = is_single(type) ? ((const float *)element)[part]
                                       : ((const double *)element)[part];
        nature.infinite |= npy_isinf(value) != 0;
        nature.nan |= npy_isnan(value) != 0;
        nature.zero &= value == 0;
    }
    return nature;
}

static inline int
errors_of(WatchedKind kind, Nature result, const Nature *operands, int count)
{
    int infinite = 0, nan = 0, errors = 0;
    for (int i = 0; i < count; i++) {
        infinite |= operands[i].infinite;
        nan |= operands[i].nan;
    }
    if (result.nan && !nan) {
        errors |= NPY_FPE_INVALID;
    }
    if (result.infinite && !infinite && !nan) {
        int pole = kind == AT_POLE || (kind == BY_SECOND && count == 2 && operands[1].zero) ||
                   (kind == OF_FIRST && operands[0].zero);
        errors |= pole ? NPY_FPE_DIVIDEBYZERO : NPY_FPE_OVERFLOW;
    }
    return errors;
}

static inline void
set_float_status(int errors)
{
    if (errors & NPY_FPE_INVALID) {
        npy_set_floatstatus_invalid();
    }
    if (errors & NPY_FPE_DIVIDEBYZERO) {
        npy_set_floatstatus_divbyzero();
    }
    if (errors & NPY_FPE_OVERFLOW) {
        npy_set_floatstatus_overflow();
    }
}

/* Whether operand `in` is where result `out` goes. */
static inline int
is_overwritten(char **data, const npy_intp *strides, int in, int out)
{
    return data[in] == data[out] && strides[in] == strides[out];
}

/* Call the loop for one block, and look for errors in the results. */
static inline void
call_for_block(PyUFuncGenericFunction loop, char **data, npy_intp count, const npy_intp *strides,
               void *user_data, WatchedKind kind, PyArray_Descr *const *types, int nin, int nout)
{
    npy_double before[2][2] = {{0, 0}, {0, 0}};
    int suspect_before = 0;
    for (int in = 0; in < nin; in++) {
        int type = types[in]->type_num;
        for (int out = nin; out < nin + nout; out++) {
            if (!parts_of(type) || !is_overwritten(data, strides, in, out)) {
                continue;
            }
            if (strides[in] == 0) {  /* A reduction: the sum so far. */
                memcpy(before[in], data[in], parts_of(type) * (is_single(type) ? 4 : 8));
            }
            suspect_before |= block_is_suspect(data[in], count, strides[in], type);
        }
    }
    block_is_ordinary = 0;
    loop(data, &count, strides, user_data);
    if (suspect_before || block_is_ordinary) {
        return;
    }
    int errors = 0;
    for (int out = nin; out < nin + nout; out++) {
        int type = types[out]->type_num;
        if (!parts_of(type) || !block_is_suspect(data[out], count, strides[out], type)) {
            continue;
        }
        int reduction = strides[out] == 0 && count > 1;
        Nature operands[2] = {{0, 0, 0}, {0, 0, 0}};
        for (npy_intp i = 0; i < count; i++) {
            Nature result = nature_of(data[out] + i * strides[out], type);
            if (!result.infinite && !result.nan) {
                continue;
            }
            for (int in = 0; in < nin; in++) {
                int of = types[in]->type_num;
                Nature operand = {0, 0, 0};
                if (parts_of(of) && is_overwritten(data, strides, in, out)) {
                    if (strides[in] == 0) {
                        operand = nature_of((char *)before[in], of);
                    }
                    else if (in == 1) {
                        operand.zero = 1;  /* It was finite; take it for the cause. */
                    }
                }
                else if (parts_of(of)) {
                    operand = nature_of(data[in] + i * strides[in], of);
                }
                if (reduction) {  /* Every element is an operand. */
                    operand.infinite |= operands[in].infinite;
                    operand.nan |= operands[in].nan;
                    operand.zero |= operands[in].zero;
                }
                operands[in] = operand;
            }
            if (!reduction || i == count - 1) {
                errors |= errors_of(kind, result, operands, nin);
            }
        }
    }
    set_float_status(errors);
}

/* Call the loop for all elements, and set the flags that a processor would have set. */
static inline void
call_watched(PyUFuncGenericFunction loop, char *const *data, npy_intp count,
             const npy_intp *strides, void *user_data, WatchedKind kind,
             PyArray_Descr *const *types, int nin, int nout)
{
    char *at[4];
    npy_intp block = strides[nin] == 0 ? count : BLOCK;  /* A reduction is one block. */
    memcpy(at, data, (nin + nout) * sizeof at[0]);
    while (count > 0) {
        npy_intp these = count < block ? count : block;
        call_for_block(loop, at, these, strides, user_data, kind, types, nin, nout);
        for (int i = 0; i < nin + nout; i++) {
            at[i] += these * strides[i];
        }
        count -= these;
    }
}

/* The kind of a ufunc's loop that is to be watched. */
static inline WatchedKind
kind_of_loop(PyUFuncObject *ufunc, PyArray_Descr *const *types)
{
    int watched = 0;
    if (ufunc->core_enabled || ufunc->nin > 2 || ufunc->nout > 2 || ufunc->name == NULL) {
        return NOT_WATCHED;
    }
    for (int i = ufunc->nin; i < ufunc->nargs; i++) {
        watched |= parts_of(types[i]->type_num);
    }
    return watched ? watched_kind(ufunc->name) : NOT_WATCHED;
}

/* The errors of one operation on scalars: an operator of `name`. */
static inline int
errors_of_scalars(const char *name, double a, double b, double result)
{
    if (npy_isfinite(result)) {
        return 0;
    }
    Nature operands[2] = {nature_of((char *)&a, NPY_DOUBLE), nature_of((char *)&b, NPY_DOUBLE)};
    return errors_of(watched_kind(name), nature_of((char *)&result, NPY_DOUBLE), operands, 2);
}

static inline int
no_errors(const char *name, ...)
{
    (void)name;
    return 0;
}

#define SCALAR_ERRORS(name, a, b, result) \
    _Generic((result), npy_float: errors_of_scalars, npy_double: errors_of_scalars, \
             default: no_errors)(name, a, b, result)

#undef BLOCK
#endif
