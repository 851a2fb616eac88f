/* The colours and the resolution of samples in JPEG with vectors of 128 bits.
 *
 * Owns the functions of libjpeg-turbo's interface for vector code (jsimd.h) that convert rows of
 * samples. Rules: results are those of jccolor.c, jdcolor.c, jcsample.c and jdsample.c, bit for
 * bit; nothing outside a row is read or written. If a row is no multiple of a vector, its last
 * vector begins earlier, and computes some samples again; a row that is shorter than one vector is
 * copied, or left to a loop without vectors. */

#define JPEG_INTERNALS
#include "jinclude.h"
#include "jpeglib.h"
#include "jsimd.h"

#include <stdint.h>
#include <string.h>
#include <wasm_simd128.h>

#define VECTOR_INLINE static inline __attribute__((always_inline))

#define SCALEBITS 16
#define FIX(x) ((int)((x) * (1 << SCALEBITS) + 0.5))

enum { STEP = 16 };  /* the samples of a vector */

/* Where to continue after `column`: the last vector of a row ends with the row. */
#define NEXT_COLUMN(column, width) \
    ((column) + STEP < (width) && (column) + 2 * STEP > (width) ? (width) - STEP : (column) + STEP)

/* ---- RGB to YCbCr ---- */

VECTOR_INLINE v128_t products(v128_t xy, int a, int b)
{
    return wasm_i32x4_dot_i16x8(xy, wasm_i16x8_make(a, b, a, b, a, b, a, b));
}

/* A byte of a pixel, or zero, for each byte of four pixels that begin at `from`: red or blue, zero,
 * green, zero. */
static v128_t selection(int first, int second, int pixel_size, int from)
{
    uint8_t bytes[16];
    for (int i = 0; i < 4; i++) {
        bytes[4 * i] = (uint8_t)(from + i * pixel_size + first);
        bytes[4 * i + 2] = (uint8_t)(from + i * pixel_size + second);
        bytes[4 * i + 1] = bytes[4 * i + 3] = 0xff;
    }
    return wasm_v128_load(bytes);
}

typedef struct {
    v128_t red_green, blue_green, last_red_green, last_blue_green;
} Selections;

/* Sixteen pixels. Half of the factor of green, which has 17 bits, goes to each product; a factor of
 * one half is -32768, subtracted. */
VECTOR_INLINE void pixels_to_ycc(const JSAMPLE *in, int pixel_size, const Selections *select,
                                 JSAMPLE *y_out, JSAMPLE *cb_out, JSAMPLE *cr_out)
{
    v128_t y[4], cb[4], cr[4];
    const v128_t half = wasm_i32x4_splat(1 << (SCALEBITS - 1));
    const v128_t centre = wasm_i32x4_splat((CENTERJSAMPLE << SCALEBITS) + (1 << (SCALEBITS - 1)) - 1);
    for (int i = 0; i < 4; i++) {
        /* The last four pixels end with the vector, the others begin with one. */
        v128_t bytes = wasm_v128_load(in + (i < 3 ? 4 * i * pixel_size : 16 * pixel_size - 16));
        v128_t rg = wasm_i8x16_swizzle(bytes, i < 3 ? select->red_green : select->last_red_green);
        v128_t bg = wasm_i8x16_swizzle(bytes, i < 3 ? select->blue_green : select->last_blue_green);
        y[i] = wasm_i32x4_add(wasm_i32x4_add(products(rg, FIX(0.29900), FIX(0.58700) / 2),
                                             products(bg, FIX(0.11400), FIX(0.58700) / 2)), half);
        cb[i] = wasm_i32x4_sub(wasm_i32x4_add(products(rg, -FIX(0.16874), -FIX(0.33126)), centre),
                               products(bg, -FIX(0.50000), 0));
        cr[i] = wasm_i32x4_sub(wasm_i32x4_add(products(bg, -FIX(0.08131), 0), centre),
                               products(rg, -FIX(0.50000), FIX(0.41869)));
    }
#define BYTES(w) \
    wasm_u8x16_narrow_i16x8( \
        wasm_i16x8_narrow_i32x4(wasm_i32x4_shr(w[0], SCALEBITS), wasm_i32x4_shr(w[1], SCALEBITS)), \
        wasm_i16x8_narrow_i32x4(wasm_i32x4_shr(w[2], SCALEBITS), wasm_i32x4_shr(w[3], SCALEBITS)))
    wasm_v128_store(y_out, BYTES(y));
    wasm_v128_store(cb_out, BYTES(cb));
    wasm_v128_store(cr_out, BYTES(cr));
#undef BYTES
}

GLOBAL(void)
jsimd_rgb_ycc_convert(j_compress_ptr cinfo, JSAMPARRAY input_buf, JSAMPIMAGE output_buf,
                      JDIMENSION output_row, int num_rows)
{
    int format = cinfo->in_color_space, size = rgb_pixelsize[format], last = 16 - 4 * size;
    int red = rgb_red[format], green = rgb_green[format], blue = rgb_blue[format];
    Selections select = { selection(red, green, size, 0), selection(blue, green, size, 0),
                          selection(red, green, size, last), selection(blue, green, size, last) };
    JDIMENSION width = cinfo->image_width;

    for (; num_rows > 0; num_rows--, output_row++) {
        const JSAMPLE *in = *input_buf++;
        JSAMPLE *y = output_buf[0][output_row];
        JSAMPLE *cb = output_buf[1][output_row], *cr = output_buf[2][output_row];
        if (width < STEP) {
            JSAMPLE pixels[4 * STEP] = { 0 }, ycc[3][STEP];
            memcpy(pixels, in, width * size);
            pixels_to_ycc(pixels, size, &select, ycc[0], ycc[1], ycc[2]);
            memcpy(y, ycc[0], width);
            memcpy(cb, ycc[1], width);
            memcpy(cr, ycc[2], width);
            continue;
        }
        for (JDIMENSION i = 0; i < width; i = NEXT_COLUMN(i, width))
            pixels_to_ycc(in + i * size, size, &select, y + i, cb + i, cr + i);
    }
}

/* ---- YCbCr to RGB ---- */

typedef struct {
    v128_t red, green, blue;
} Colours;

/* Eight pixels: numbers that are not yet limited. jdcolor.c multiplies by numbers with 16 bits
 * after the point; a product with 15 bits, plus a multiple of the sample, rounds to the same. */
VECTOR_INLINE Colours ycc_to_colours(v128_t y, v128_t cb, v128_t cr)
{
    cb = wasm_i16x8_sub(cb, wasm_i16x8_splat(CENTERJSAMPLE));
    cr = wasm_i16x8_sub(cr, wasm_i16x8_splat(CENTERJSAMPLE));
    v128_t red = wasm_i16x8_add(cr, wasm_i16x8_q15mulr_sat(
        cr, wasm_i16x8_splat((FIX(1.40200) - FIX(1)) / 2)));
    v128_t blue = wasm_i16x8_add(wasm_i16x8_shl(cb, 1), wasm_i16x8_q15mulr_sat(
        cb, wasm_i16x8_splat((FIX(1.77200) - FIX(2)) / 2)));
    const v128_t half = wasm_i32x4_splat(1 << 14);
    v128_t first = wasm_i16x8_shuffle(cb, cr, 0, 8, 1, 9, 2, 10, 3, 11);
    v128_t second = wasm_i16x8_shuffle(cb, cr, 4, 12, 5, 13, 6, 14, 7, 15);
    first = products(first, -FIX(0.34414) / 2, -FIX(0.71414) / 2);
    second = products(second, -FIX(0.34414) / 2, -FIX(0.71414) / 2);
    v128_t green = wasm_i16x8_narrow_i32x4(wasm_i32x4_shr(wasm_i32x4_add(first, half), 15),
                                           wasm_i32x4_shr(wasm_i32x4_add(second, half), 15));
    return (Colours){ wasm_i16x8_add(y, red), wasm_i16x8_add(y, green), wasm_i16x8_add(y, blue) };
}

/* Sixteen pixels of three bytes. */
VECTOR_INLINE void store_triples(JSAMPLE *out, v128_t a, v128_t b, v128_t c)
{
    enum { x = 0 };  /* replaced by the second step */
    v128_t v = wasm_i8x16_shuffle(a, b, 0, 16, x, 1, 17, x, 2, 18, x, 3, 19, x, 4, 20, x, 5);
    wasm_v128_store(out, wasm_i8x16_shuffle(
        v, c, 0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15));
    v = wasm_i8x16_shuffle(a, b, 21, x, 6, 22, x, 7, 23, x, 8, 24, x, 9, 25, x, 10, 26);
    wasm_v128_store(out + 16, wasm_i8x16_shuffle(
        v, c, 0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15));
    v = wasm_i8x16_shuffle(a, b, x, 11, 27, x, 12, 28, x, 13, 29, x, 14, 30, x, 15, 31, x);
    wasm_v128_store(out + 32, wasm_i8x16_shuffle(
        v, c, 26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31));
}

/* Sixteen pixels of four bytes. */
VECTOR_INLINE void store_quads(JSAMPLE *out, v128_t a, v128_t b, v128_t c, v128_t d)
{
#define FIRST8(a, b) \
    wasm_i8x16_shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define SECOND8(a, b) \
    wasm_i8x16_shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
    v128_t ab[2] = { FIRST8(a, b), SECOND8(a, b) }, cd[2] = { FIRST8(c, d), SECOND8(c, d) };
    for (int i = 0; i < 2; i++) {
        wasm_v128_store(out + 32 * i, wasm_i16x8_shuffle(ab[i], cd[i], 0, 8, 1, 9, 2, 10, 3, 11));
        wasm_v128_store(out + 32 * i + 16,
                        wasm_i16x8_shuffle(ab[i], cd[i], 4, 12, 5, 13, 6, 14, 7, 15));
    }
}

VECTOR_INLINE void ycc_to_pixels(const JSAMPLE *y, const JSAMPLE *cb, const JSAMPLE *cr, JSAMPLE *out,
                                 int red, int pixel_size)
{
    Colours first = ycc_to_colours(wasm_u16x8_load8x8(y), wasm_u16x8_load8x8(cb),
                                   wasm_u16x8_load8x8(cr));
    Colours second = ycc_to_colours(wasm_u16x8_load8x8(y + 8), wasm_u16x8_load8x8(cb + 8),
                                    wasm_u16x8_load8x8(cr + 8));
    v128_t r = wasm_u8x16_narrow_i16x8(first.red, second.red);
    v128_t g = wasm_u8x16_narrow_i16x8(first.green, second.green);
    v128_t b = wasm_u8x16_narrow_i16x8(first.blue, second.blue);
    v128_t opaque = wasm_i8x16_splat(-1);
    if (pixel_size == 3)
        red == 0 ? store_triples(out, r, g, b) : store_triples(out, b, g, r);
    else if (red == 0 || red == 2)
        red == 0 ? store_quads(out, r, g, b, opaque) : store_quads(out, b, g, r, opaque);
    else
        red == 1 ? store_quads(out, opaque, r, g, b) : store_quads(out, opaque, b, g, r);
}

VECTOR_INLINE void ycc_to_rows(j_decompress_ptr cinfo, JSAMPIMAGE input_buf, JDIMENSION input_row,
                               JSAMPARRAY output_buf, int num_rows, int red, int size)
{
    JDIMENSION width = cinfo->output_width;
    for (; num_rows > 0; num_rows--, input_row++) {
        const JSAMPLE *y = input_buf[0][input_row];
        const JSAMPLE *cb = input_buf[1][input_row], *cr = input_buf[2][input_row];
        JSAMPLE *out = *output_buf++;
        if (width < STEP) {
            JSAMPLE ycc[3][STEP] = { { 0 } }, pixels[4 * STEP];
            memcpy(ycc[0], y, width);
            memcpy(ycc[1], cb, width);
            memcpy(ycc[2], cr, width);
            ycc_to_pixels(ycc[0], ycc[1], ycc[2], pixels, red, size);
            memcpy(out, pixels, width * size);
            continue;
        }
        for (JDIMENSION i = 0; i < width; i = NEXT_COLUMN(i, width))
            ycc_to_pixels(y + i, cb + i, cr + i, out + i * size, red, size);
    }
}

GLOBAL(void)
jsimd_ycc_rgb_convert(j_decompress_ptr cinfo, JSAMPIMAGE input_buf, JDIMENSION input_row,
                      JSAMPARRAY output_buf, int num_rows)
{
#define ROWS(red, size) \
    ycc_to_rows(cinfo, input_buf, input_row, output_buf, num_rows, red, size)
    int format = cinfo->out_color_space;
    if (rgb_pixelsize[format] == 3)
        rgb_red[format] == 0 ? ROWS(0, 3) : ROWS(2, 3);
    else if (rgb_red[format] == 0)
        ROWS(0, 4);
    else if (rgb_red[format] == 1)
        ROWS(1, 4);
    else if (rgb_red[format] == 2)
        ROWS(2, 4);
    else
        ROWS(3, 4);
#undef ROWS
}

/* ---- Half the resolution ---- */

/* Sixteen means of two samples of each row. The odd ones are rounded differently. */
VECTOR_INLINE v128_t means(const JSAMPLE *above, const JSAMPLE *below, int rows)
{
    v128_t sums[2];
    for (int i = 0; i < 2; i++) {
        sums[i] = wasm_u16x8_extadd_pairwise_u8x16(wasm_v128_load(above + 16 * i));
        if (rows == 2)
            sums[i] = wasm_i16x8_add(sums[i], wasm_u16x8_extadd_pairwise_u8x16(
                                                  wasm_v128_load(below + 16 * i)));
        sums[i] = wasm_i16x8_add(sums[i], wasm_i32x4_splat(rows == 2 ? 0x20001 : 0x10000));
        sums[i] = wasm_u16x8_shr(sums[i], rows);
    }
    return wasm_u8x16_narrow_i16x8(sums[0], sums[1]);
}

VECTOR_INLINE void downsample(j_compress_ptr cinfo, jpeg_component_info *compptr,
                              JSAMPARRAY input_data, JSAMPARRAY output_data, int rows)
{
    JDIMENSION width = compptr->width_in_blocks * (cinfo->master->lossless ? 1 : DCTSIZE);
    for (int i = 0; i < cinfo->max_v_samp_factor; i++)  /* repeat the last sample of each row */
        if (2 * width > cinfo->image_width)
            memset(input_data[i] + cinfo->image_width, input_data[i][cinfo->image_width - 1],
                   2 * width - cinfo->image_width);
    for (int i = 0; i < compptr->v_samp_factor; i++) {
        const JSAMPLE *above = input_data[rows * i], *below = input_data[rows * i + rows - 1];
        JSAMPLE *out = output_data[i];
        JDIMENSION column = 0;
        for (; column + STEP <= width; column += STEP)
            wasm_v128_store(out + column, means(above + 2 * column, below + 2 * column, rows));
        for (; column < width; column++) {
            int sum = above[2 * column] + above[2 * column + 1] + (column & 1);
            if (rows == 2)
                sum += below[2 * column] + below[2 * column + 1] + 1;
            out[column] = (JSAMPLE)(sum >> rows);
        }
    }
}

GLOBAL(void)
jsimd_h2v2_downsample(j_compress_ptr cinfo, jpeg_component_info *compptr, JSAMPARRAY input_data,
                      JSAMPARRAY output_data)
{
    downsample(cinfo, compptr, input_data, output_data, 2);
}

GLOBAL(void)
jsimd_h2v1_downsample(j_compress_ptr cinfo, jpeg_component_info *compptr, JSAMPARRAY input_data,
                      JSAMPARRAY output_data)
{
    downsample(cinfo, compptr, input_data, output_data, 1);
}

/* ---- Twice the resolution, with samples between their neighbours ---- */

/* A sample, or with a second row, one that is three times as near to the first row. */
VECTOR_INLINE int column_sum(const JSAMPLE *near, const JSAMPLE *far, JDIMENSION column)
{
    return far ? 3 * near[column] + far[column] : near[column];
}

VECTOR_INLINE v128_t column_sums(const JSAMPLE *near, const JSAMPLE *far, JDIMENSION column)
{
    v128_t sums = wasm_u16x8_load8x8(near + column);
    if (far)
        sums = wasm_i16x8_add(wasm_i16x8_add(sums, wasm_i16x8_shl(sums, 1)),
                              wasm_u16x8_load8x8(far + column));
    return sums;
}

/* Two samples for each of eight: a quarter comes from the sample before or after it. */
VECTOR_INLINE v128_t between(v128_t before, v128_t sums, v128_t after, int rows)
{
    v128_t three = wasm_i16x8_add(sums, wasm_i16x8_shl(sums, 1));
    v128_t even = wasm_i16x8_add(wasm_i16x8_add(three, before), wasm_i16x8_splat(rows == 2 ? 8 : 1));
    v128_t odd = wasm_i16x8_add(wasm_i16x8_add(three, after), wasm_i16x8_splat(rows == 2 ? 7 : 2));
    even = wasm_u16x8_shr(even, 2 * rows);
    odd = wasm_i16x8_shl(wasm_u16x8_shr(odd, 2 * rows), 8);
    return wasm_v128_or(even, odd);
}

/* Beyond its ends, a row continues with its first and last sample. */
VECTOR_INLINE void upsample_row(const JSAMPLE *near, const JSAMPLE *far, JSAMPLE *out, JDIMENSION width,
                                int rows)
{
    if (width < STEP) {
        for (JDIMENSION i = 0; i < width; i++) {
            int sum = column_sum(near, far, i);
            int before = i > 0 ? column_sum(near, far, i - 1) : sum;
            int after = i + 1 < width ? column_sum(near, far, i + 1) : sum;
            out[2 * i] = (JSAMPLE)((3 * sum + before + (rows == 2 ? 8 : 1)) >> (2 * rows));
            out[2 * i + 1] = (JSAMPLE)((3 * sum + after + (rows == 2 ? 7 : 2)) >> (2 * rows));
        }
        return;
    }
    for (JDIMENSION i = 0; i < width; i = NEXT_COLUMN(i, width)) {
        JDIMENSION end = i + STEP;
        v128_t a = column_sums(near, far, i), b = column_sums(near, far, i + 8);
        v128_t before = wasm_i16x8_splat(column_sum(near, far, i > 0 ? i - 1 : 0));
        v128_t after = wasm_i16x8_splat(column_sum(near, far, end < width ? end : width - 1));
        v128_t before_a = wasm_i16x8_shuffle(before, a, 7, 8, 9, 10, 11, 12, 13, 14);
        v128_t before_b = wasm_i16x8_shuffle(a, b, 7, 8, 9, 10, 11, 12, 13, 14);
        v128_t after_a = wasm_i16x8_shuffle(a, b, 1, 2, 3, 4, 5, 6, 7, 8);
        v128_t after_b = wasm_i16x8_shuffle(b, after, 1, 2, 3, 4, 5, 6, 7, 8);
        wasm_v128_store(out + 2 * i, between(before_a, a, after_a, rows));
        wasm_v128_store(out + 2 * i + 16, between(before_b, b, after_b, rows));
    }
}

GLOBAL(void)
jsimd_h2v2_fancy_upsample(j_decompress_ptr cinfo, jpeg_component_info *compptr,
                          JSAMPARRAY input_data, JSAMPARRAY *output_data_ptr)
{
    for (int i = 0; i < cinfo->max_v_samp_factor; i++) {
        JSAMPARRAY near = input_data + i / 2;
        upsample_row(near[0], i % 2 ? near[1] : near[-1], (*output_data_ptr)[i],
                     compptr->downsampled_width, 2);
    }
}

GLOBAL(void)
jsimd_h2v1_fancy_upsample(j_decompress_ptr cinfo, jpeg_component_info *compptr,
                          JSAMPARRAY input_data, JSAMPARRAY *output_data_ptr)
{
    for (int i = 0; i < cinfo->max_v_samp_factor; i++)
        upsample_row(input_data[i], NULL, (*output_data_ptr)[i], compptr->downsampled_width, 1);
}

/* What this file has, and what it leaves to the rest of the library. */
GLOBAL(int) jsimd_can_rgb_ycc(void) { return 1; }
GLOBAL(int) jsimd_can_ycc_rgb(void) { return 1; }
GLOBAL(int) jsimd_can_h2v2_downsample(void) { return 1; }
GLOBAL(int) jsimd_can_h2v1_downsample(void) { return 1; }
GLOBAL(int) jsimd_can_h2v2_fancy_upsample(void) { return 1; }
GLOBAL(int) jsimd_can_h2v1_fancy_upsample(void) { return 1; }

#define LEFT_OUT(can, function, parameters) \
    GLOBAL(int) can(void) { return 0; } \
    GLOBAL(void) function parameters {}

#define UPSAMPLE_PARAMETERS \
    (j_decompress_ptr cinfo, jpeg_component_info *compptr, JSAMPARRAY input_data, \
     JSAMPARRAY *output_data_ptr)
#define MERGED_PARAMETERS \
    (j_decompress_ptr cinfo, JSAMPIMAGE input_buf, JDIMENSION in_row_group_ctr, \
     JSAMPARRAY output_buf)

LEFT_OUT(jsimd_can_rgb_gray, jsimd_rgb_gray_convert,
         (j_compress_ptr cinfo, JSAMPARRAY input_buf, JSAMPIMAGE output_buf, JDIMENSION output_row,
          int num_rows))
LEFT_OUT(jsimd_can_ycc_rgb565, jsimd_ycc_rgb565_convert,
         (j_decompress_ptr cinfo, JSAMPIMAGE input_buf, JDIMENSION input_row, JSAMPARRAY output_buf,
          int num_rows))
LEFT_OUT(jsimd_can_h2v2_upsample, jsimd_h2v2_upsample, UPSAMPLE_PARAMETERS)
LEFT_OUT(jsimd_can_h2v1_upsample, jsimd_h2v1_upsample, UPSAMPLE_PARAMETERS)
LEFT_OUT(jsimd_can_h2v2_merged_upsample, jsimd_h2v2_merged_upsample, MERGED_PARAMETERS)
LEFT_OUT(jsimd_can_h2v1_merged_upsample, jsimd_h2v1_merged_upsample, MERGED_PARAMETERS)
