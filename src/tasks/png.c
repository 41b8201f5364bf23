#include "tasks/png.h"

#include "base/mem.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

// What libpng's calls back know.
typedef struct {
    const unsigned char *bytes;
    int64_t size, at;
    char text[128]; // of the error
    jmp_buf back;
} decoder;

static void read_bytes(png_structp png, png_bytep out, size_t count)
{
    decoder *d = png_get_io_ptr(png);
    if ((int64_t)count > d->size - d->at) {
        png_error(png, "the file is cut off");
    }
    memcpy(out, d->bytes + d->at, count);
    d->at += (int64_t)count;
}

static void on_error(png_structp png, const char *text)
{
    decoder *d = png_get_error_ptr(png);
    snprintf(d->text, sizeof d->text, "%s", text);
    longjmp(d->back, 1);
}

static void on_warning(png_structp png, const char *text)
{
    (void)png;
    (void)text;
}

static rfa_status reserve(rfa_image *image, int64_t size)
{
    if (size > image->capacity) {
        rfa_free(image->values);
        image->values = NULL;
        image->capacity = 0;
        RFA_TRY(rfa_alloc(&image->values, size, 1, "picture"));
        image->capacity = size;
    }
    return RFA_OK;
}

// Up to the last row. Errors of libpng jump out; what it returns is for memory only.
static rfa_status decode(rfa_image *image, png_structp png, png_infop info)
{
    png_set_user_limits(png, RFA_IMAGE_SIDE, RFA_IMAGE_SIDE);
    png_set_chunk_malloc_max(png, 1 << 24);
    png_read_info(png, info);
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    image->width = (int)png_get_image_width(png, info);
    image->height = (int)png_get_image_height(png, info);
    image->channels = png_get_channels(png, info);
    if (image->channels != 1 && image->channels != 3) {
        png_error(png, "neither grey nor colour");
    }
    const int64_t row = (int64_t)image->width * image->channels;
    RFA_TRY(reserve(image, row * image->height));
    for (int pass = 0; pass < passes; pass++) {
        for (int y = 0; y < image->height; y++) {
            png_read_row(png, image->values + y * row, NULL);
        }
    }
    png_read_end(png, NULL);
    return RFA_OK;
}

rfa_status
rfa_png_decode(rfa_image *image, const char *name, const unsigned char *bytes, int64_t size)
{
    decoder d = {.bytes = bytes, .size = size};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_read_struct(&png, NULL, NULL);
        return rfa_fail(RFA_ERR_MEMORY, "out of memory for a PNG file");
    }
    rfa_status status;
    if (setjmp(d.back) == 0) { // NOLINT(cert-err52-cpp): the only way that libpng has
        png_set_read_fn(png, &d, read_bytes);
        status = decode(image, png, info);
    } else {
        status = rfa_fail(RFA_ERR_IO, "%s: not a good PNG file: %s", name, d.text);
    }
    png_destroy_read_struct(&png, &info, NULL);
    return status;
}

void rfa_image_free(rfa_image *image)
{
    rfa_free(image->values);
    *image = (rfa_image){0};
}

unsigned char rfa_grey_value(rfa_grey formula, int red, int green, int blue)
{
    if (formula == RFA_GREY_PIL) {
        return (unsigned char)((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
    }
    const float unit = 1.0F / 255.0F;
    const float r = (float)red * unit, g = (float)green * unit, b = (float)blue * unit;
    const float grey = 0.2989F * r + 0.5870F * g + 0.1140F * b;
    const float scaled = grey * 255.5F;
    return (unsigned char)(scaled < 255.0F ? (int)scaled : 255);
}
