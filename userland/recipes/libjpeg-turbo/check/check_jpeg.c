/* Prints one digest for each kind of work that a JPEG library does. A library that has vector code
 * must print what one without it prints.
 *
 * Pictures have all widths up to some vectors, noise, the extremes, and edges; files are read whole
 * and damaged. Coefficients and quantisation tables are also such as no picture has. A row that the
 * library writes lies between bytes that must stay. */

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { GUARD = 16, GUARD_BYTE = 0x55 };

static const J_COLOR_SPACE spaces[] = { JCS_RGB, JCS_EXT_RGB, JCS_EXT_RGBX, JCS_EXT_BGR, JCS_EXT_BGRX,
                                        JCS_EXT_XBGR, JCS_EXT_XRGB };
static const int pixel_sizes[] = { 3, 3, 4, 3, 4, 4, 4 };
static const int samplings[][2] = { { 1, 1 }, { 2, 1 }, { 2, 2 }, { 1, 2 }, { 4, 1 } };

static uint64_t state = 1, digest = 1;
static jmp_buf failed;

static unsigned any(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void take(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ bytes[i]) * 1099511628211u;
}

static void on_error(j_common_ptr info)
{
    take(&info->err->msg_code, sizeof info->err->msg_code);
    longjmp(failed, 1);
}

static void no_message(j_common_ptr info)
{
}

static struct jpeg_error_mgr *errors(struct jpeg_error_mgr *manager)
{
    jpeg_std_error(manager);
    manager->error_exit = on_error;
    manager->output_message = no_message;
    return manager;
}

static void read_file(unsigned char *file, unsigned long size, J_COLOR_SPACE space, int scale)
{
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr manager;
    unsigned char *volatile guarded = NULL;
    info.err = errors(&manager);
    jpeg_create_decompress(&info);
    if (!setjmp(failed)) {
        jpeg_mem_src(&info, file, size);
        jpeg_read_header(&info, TRUE);
        info.scale_num = scale, info.scale_denom = 8;
        if (info.jpeg_color_space == JCS_YCbCr)
            info.out_color_space = space;
        jpeg_start_decompress(&info);
        size_t row_size = info.output_width * info.output_components;
        guarded = malloc(row_size + 2 * GUARD);
        while (info.output_scanline < info.output_height) {
            memset(guarded, GUARD_BYTE, row_size + 2 * GUARD);
            JSAMPROW row = guarded + GUARD;
            jpeg_read_scanlines(&info, &row, 1);
            take(guarded, row_size + 2 * GUARD);
        }
        jpeg_finish_decompress(&info);
    }
    jpeg_destroy_decompress(&info);
    free(guarded);
}

static unsigned char sample(int kind, int x, int y, int channel)
{
    switch (kind) {
    case 0:
        return any(256);
    case 1:
        return any(2) * 255;
    case 2:
        return 3 * x + 2 * y + 40 * channel;
    case 3:
        return (x / 8 + y / 8) % 2 * 255;
    default:
        return 100 + any(40);
    }
}

static void convey_picture(int width, int height, int quality)
{
    int format = any(7), sampling = any(5), kind = any(5), pixel_size = pixel_sizes[format];
    unsigned char *row = malloc(width * pixel_size), *volatile file = NULL;
    volatile unsigned long size = 0;
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr manager;
    info.err = errors(&manager);
    jpeg_create_compress(&info);
    if (!setjmp(failed)) {
        jpeg_mem_dest(&info, (unsigned char **)&file, (unsigned long *)&size);
        info.image_width = width, info.image_height = height;
        info.input_components = pixel_size, info.in_color_space = spaces[format];
        jpeg_set_defaults(&info);
        jpeg_set_quality(&info, quality, TRUE);
        info.comp_info[0].h_samp_factor = samplings[sampling][0];
        info.comp_info[0].v_samp_factor = samplings[sampling][1];
        info.restart_interval = any(4) ? 0 : 2;
        info.optimize_coding = any(2);
        if (!any(6))
            jpeg_simple_progression(&info);
        jpeg_start_compress(&info, TRUE);
        for (int y = 0; y < height; y++) {
            for (int i = 0; i < width * pixel_size; i++)
                row[i] = sample(kind, i / pixel_size, y, i % pixel_size);
            jpeg_write_scanlines(&info, &row, 1);
        }
        jpeg_finish_compress(&info);
        take(file, size);
        read_file(file, size, spaces[format], 8);
        read_file(file, size, spaces[any(7)], 1 + any(16));
        for (int i = any(20); i >= 0; i--)
            file[any(size)] = any(256);
        read_file(file, size, spaces[any(7)], 8);
    }
    jpeg_destroy_compress(&info);
    free(file);
    free(row);
}

/* A file of coefficients up to `limit`, `zeros` percent of them zero. */
static void convey_coefficients(int limit, int largest_factor, unsigned zeros)
{
    unsigned char *volatile file = NULL;
    volatile unsigned long size = 0;
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr manager;
    info.err = errors(&manager);
    jpeg_create_compress(&info);
    if (!setjmp(failed)) {
        jpeg_mem_dest(&info, (unsigned char **)&file, (unsigned long *)&size);
        info.image_width = info.image_height = 64;
        info.input_components = 1, info.in_color_space = JCS_GRAYSCALE;
        jpeg_set_defaults(&info);
        for (int i = 0; i < DCTSIZE2; i++)
            info.quant_tbl_ptrs[0]->quantval[i] = 1 + any(largest_factor);
        jvirt_barray_ptr blocks = info.mem->request_virt_barray((j_common_ptr)&info, JPOOL_IMAGE, TRUE,
                                                                8, 8, 8);
        info.optimize_coding = any(2);
        info.mem->realize_virt_arrays((j_common_ptr)&info);
        jpeg_write_coefficients(&info, &blocks);
        for (int i = 0; i < 8 * 8 * DCTSIZE2; i++) {
            int row = i / (8 * DCTSIZE2), column = i / DCTSIZE2 % 8;
            JBLOCKARRAY rows = info.mem->access_virt_barray((j_common_ptr)&info, blocks, row, 1, TRUE);
            rows[0][column][i % DCTSIZE2] = any(100) < zeros ? 0 : (int)any(2 * limit + 1) - limit;
        }
        jpeg_finish_compress(&info);
        take(file, size);
        read_file(file, size, JCS_GRAYSCALE, 8);
    }
    jpeg_destroy_compress(&info);
    free(file);
}

static void print_digest(const char *what)
{
    printf("%s %016llx\n", what, (unsigned long long)digest);
    digest = 1;
}

int main(void)
{
    for (int width = 1; width <= 70; width++)
        convey_picture(width, 1 + any(40), 1 + any(100));
    print_digest("small pictures");
    for (int i = 0; i < 30; i++)
        convey_picture(100 + any(300), 1 + any(60), 80 + any(21));
    print_digest("larger pictures");
    static const int limits[] = { 3, 100, 1023, 2047 }, factors[] = { 1, 20, 255, 2000, 65535 };
    for (int i = 0; i < 100; i++)
        convey_coefficients(limits[any(4)], factors[any(5)], any(100));
    print_digest("coefficients");
    for (int i = 0; i < 5; i++)
        convey_coefficients(32767, 1, 50);
    print_digest("coefficients that are too large");
}
