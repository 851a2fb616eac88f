/* The Huffman encoder of JPEG with vectors of 128 bits.
 *
 * Owns the functions of libjpeg-turbo's interface for vector code (jsimd.h) that encode blocks.
 * Rules: the bits are those of encode_one_block in jchuff.c, and so is the error for a coefficient
 * that is too large.
 *
 * Vectors find the coefficients that are not zero, so only these take time. */

#define JPEG_INTERNALS
#include "jinclude.h"
#include "jpeglib.h"
#include "jsimd.h"

#include <stdint.h>
#include <string.h>
#include <wasm_simd128.h>

#define VECTOR_INLINE static inline __attribute__((always_inline))

/* The beginning of working_state in jchuff.c. */
typedef struct {
    JOCTET *next_output_byte;
    size_t free_in_buffer;
    struct {
        union {
            size_t c;
            unsigned long long simd;
        } put_buffer;
        int free_bits;
        int last_dc_val[MAX_COMPS_IN_SCAN];
    } cur;
    j_compress_ptr cinfo;
} State;

/* Bits that are not yet written: the lowest of `bits`, without `free`. */
typedef struct {
    uint64_t bits;
    int free;
    JOCTET *buffer;
} Output;

/* Write eight bytes. A byte of ones is followed by one of zeros. */
VECTOR_INLINE void flush(Output *out)
{
    uint64_t bits = out->bits;
    if (bits & 0x8080808080808080 & ~(bits + 0x0101010101010101)) {
        for (int shift = 56; shift >= 0; shift -= 8) {
            JOCTET byte = (JOCTET)(bits >> shift);
            *out->buffer++ = byte;
            if (byte == 0xff)
                *out->buffer++ = 0;
        }
    } else {
        bits = __builtin_bswap64(bits);
        memcpy(out->buffer, &bits, 8);
        out->buffer += 8;
    }
}

/* `size` is less than 32, so at least one bit is free after a flush. */
VECTOR_INLINE void put(Output *out, uint64_t code, int size)
{
    out->free -= size;
    if (out->free < 0) {
        out->bits = (out->bits << (size + out->free)) | (code >> -out->free);
        flush(out);
        out->free += 64;
        out->bits = code;
    } else {
        out->bits = (out->bits << size) | code;
    }
}

/* The code of a run of zeros and a number with `size` bits, and then the number. */
VECTOR_INLINE void put_number(Output *out, const c_derived_tbl *table, int run, int number, int size)
{
    int symbol = run * 16 + size;
    uint32_t low = (uint32_t)(number + (number >> 31)) & ((1u << size) - 1);
    put(out, table->ehufco[symbol] << size | low, table->ehufsi[symbol] + size);
}

VECTOR_INLINE int size_of(int number)
{
    unsigned positive = number < 0 ? -number : number;
    return positive ? 32 - __builtin_clz(positive) : 0;
}

/* One bit for each coefficient that is not zero, in the order in which they are encoded. */
VECTOR_INLINE uint64_t not_zero(const JCOEF *block)
{
    v128_t r[4];  /* two rows of the block in each, as bytes */
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++)
        r[i] = wasm_i8x16_eq(wasm_i8x16_narrow_i16x8(wasm_v128_load(block + 16 * i),
                                                     wasm_v128_load(block + 16 * i + 8)),
                             wasm_i8x16_splat(0));
    /* The numbers from 16 on stand for bytes of the second vector; x is replaced by the next line. */
    enum { x = 0 };
    v128_t a = wasm_i8x16_shuffle(r[0], r[1], 0, 1, 8, 16, 9, 2, 3, 10, 17, 24, x, 25, 18, 11, 4, 5);
    a = wasm_i8x16_shuffle(a, r[2], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 11, 12, 13, 14, 15);
    v128_t b = wasm_i8x16_shuffle(r[0], r[1], 12, 19, 26, x, x, x, x, x, 27, 20, 13, 6, 7, 14, 21, 28);
    v128_t c = wasm_i8x16_shuffle(r[2], r[3], x, x, x, 1, 8, 16, 9, 2, x, x, x, x, x, x, x, x);
    b = wasm_i8x16_shuffle(b, c, 0, 1, 2, 19, 20, 21, 22, 23, 8, 9, 10, 11, 12, 13, 14, 15);
    c = wasm_i8x16_shuffle(r[2], r[3], 3, 10, 17, 24, 25, 18, 11, 4, x, x, x, x, x, 5, 12, 19);
    v128_t d = wasm_i8x16_shuffle(r[0], r[1], x, x, x, x, x, x, x, x, 29, 22, 15, 23, 30, x, x, x);
    c = wasm_i8x16_shuffle(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 26, 27, 28, 13, 14, 15);
    d = wasm_i8x16_shuffle(r[2], r[3], 26, 27, 20, 13, 6, x, 7, 14, 21, 28, 29, 22, 15, 23, 30, 31);
    d = wasm_i8x16_shuffle(d, r[1], 0, 1, 2, 3, 4, 31, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return ~((uint64_t)wasm_i8x16_bitmask(a) | (uint64_t)wasm_i8x16_bitmask(b) << 16 |
             (uint64_t)wasm_i8x16_bitmask(c) << 32 | (uint64_t)wasm_i8x16_bitmask(d) << 48);
}

GLOBAL(JOCTET *)
jsimd_huff_encode_one_block(void *state_in, JOCTET *buffer, JCOEFPTR block, int last_dc_val,
                            c_derived_tbl *dctbl, c_derived_tbl *actbl)
{
    State *state = state_in;
    Output out = { state->cur.put_buffer.simd, state->cur.free_bits, buffer };
    const int largest = state->cinfo->data_precision + 2;

    int number = block[0] - last_dc_val, size = size_of(number);
    if (size > largest + 1)
        ERREXIT(state->cinfo, JERR_BAD_DCT_COEF);
    put_number(&out, dctbl, 0, number, size);

    int last = 0;
    for (uint64_t left = not_zero(block) & ~(uint64_t)1; left; left &= left - 1) {
        int index = __builtin_ctzll(left), run = index - last - 1;
        last = index;
        for (; run >= 16; run -= 16)
            put(&out, actbl->ehufco[0xf0], actbl->ehufsi[0xf0]);
        number = block[jpeg_natural_order[index]];
        size = size_of(number);
        if (size > largest)
            ERREXIT(state->cinfo, JERR_BAD_DCT_COEF);
        put_number(&out, actbl, run, number, size);
    }
    if (last != DCTSIZE2 - 1)
        put(&out, actbl->ehufco[0], actbl->ehufsi[0]);

    state->cur.put_buffer.simd = out.bits;
    state->cur.free_bits = out.free;
    return out.buffer;
}

GLOBAL(int) jsimd_can_huff_encode_one_block(void) { return 1; }

/* Progressive files are left to jcphuff.c. */
GLOBAL(int) jsimd_can_encode_mcu_AC_first_prepare(void) { return 0; }
GLOBAL(int) jsimd_can_encode_mcu_AC_refine_prepare(void) { return 0; }

GLOBAL(void)
jsimd_encode_mcu_AC_first_prepare(const JCOEF *block, const int *jpeg_natural_order_start, int Sl,
                                  int Al, UJCOEF *values, size_t *zerobits)
{
}

GLOBAL(int)
jsimd_encode_mcu_AC_refine_prepare(const JCOEF *block, const int *jpeg_natural_order_start, int Sl,
                                   int Al, UJCOEF *absvalues, size_t *bits)
{
    return 0;
}
