// Precision: f32
// PNG files of all kinds, cut and damaged; grey of known colours.
#include "support/support.h"

#include "tasks/png.h"

#include <png.h>
#include <string.h>

enum { WIDTH = 7, HEIGHT = 5, FILE_SIZE = 1 << 14 };

// A PNG with these settings; values [HEIGHT][WIDTH][channels of the type]. Returns its size.
typedef struct {
    unsigned char bytes[FILE_SIZE];
    size_t size;
} memory;

static void write_bytes(png_structp png, png_bytep bytes, size_t count)
{
    memory *m = png_get_io_ptr(png);
    if (m->size + count <= FILE_SIZE) {
        memcpy(m->bytes + m->size, bytes, count);
        m->size += count;
    }
}

static void flush(png_structp png)
{
    (void)png;
}

static void encode(memory *m, int type, int bits, int interlace, unsigned char rows[HEIGHT][64])
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    m->size = 0;
    png_set_write_fn(png, m, write_bytes, flush);
    png_set_IHDR(png, info, WIDTH, HEIGHT, bits, type, interlace, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_gAMA(png, info, 0.3); // must not change a value
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_color colors[4] = {{10, 20, 30}, {40, 50, 60}, {70, 80, 90}, {255, 0, 1}};
        png_set_PLTE(png, info, colors, 4);
    }
    png_write_info(png, info);
    png_bytep pointers[HEIGHT];
    for (int y = 0; y < HEIGHT; y++) {
        pointers[y] = rows[y];
    }
    png_write_image(png, pointers);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
}

static void fill(unsigned char rows[HEIGHT][64])
{
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < 64; x++) {
            rows[y][x] = (unsigned char)(y * 53 + x * 29 + (x * y) % 7);
        }
    }
}

// The bytes that the decoder should give for value (y, x, c).
static int expected(int type, int bits, unsigned char rows[HEIGHT][64], int y, int x, int c)
{
    static const int palette[4][3] = {{10, 20, 30}, {40, 50, 60}, {70, 80, 90}, {255, 0, 1}};
    switch (type) {
    case PNG_COLOR_TYPE_GRAY:
        return bits == 8    ? rows[y][x]
               : bits == 16 ? rows[y][2 * x]
                            : (rows[y][x / 8] >> (7 - x % 8) & 1) * 255; // one bit
    case PNG_COLOR_TYPE_GRAY_ALPHA: return rows[y][2 * x];
    case PNG_COLOR_TYPE_RGB: return rows[y][3 * x + c];
    case PNG_COLOR_TYPE_RGB_ALPHA: return rows[y][4 * x + c];
    default: return palette[rows[y][x / 4] >> (6 - 2 * (x % 4)) & 3][c]; // two bits
    }
}

static void all_kinds_are_read(void **state)
{
    (void)state;
    static const int kinds[][3] = {
        {PNG_COLOR_TYPE_GRAY, 8, 1},    {PNG_COLOR_TYPE_GRAY, 1, 1},
        {PNG_COLOR_TYPE_GRAY, 16, 1},   {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 1},
        {PNG_COLOR_TYPE_RGB, 8, 3},     {PNG_COLOR_TYPE_RGB_ALPHA, 8, 3},
        {PNG_COLOR_TYPE_PALETTE, 2, 3},
    };
    static memory m;
    unsigned char rows[HEIGHT][64];
    rfa_image image = {0};
    fill(rows);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int interlace = 0; interlace < 2; interlace++) {
            encode(&m, kinds[k][0], kinds[k][1], interlace, rows);
            check(m.size > 50 && m.size < FILE_SIZE);
            check_ok(rfa_png_decode(&image, "x.png", m.bytes, (int64_t)m.size));
            check(image.width == WIDTH && image.height == HEIGHT && image.channels == kinds[k][2]);
            bool same = true;
            for (int i = 0; i < WIDTH * HEIGHT * image.channels; i++) {
                const int c = i % image.channels, x = i / image.channels % WIDTH;
                const int y = i / image.channels / WIDTH;
                same = same && image.values[i] == expected(kinds[k][0], kinds[k][1], rows, y, x, c);
            }
            check(same);
        }
    }
    rfa_image_free(&image);
}

// Every shorter file, and every file with one byte changed, is refused or decodes to a picture.
static void damage_is_found(void **state)
{
    (void)state;
    static memory m;
    unsigned char rows[HEIGHT][64];
    rfa_image image = {0};
    fill(rows);
    encode(&m, PNG_COLOR_TYPE_GRAY, 8, 0, rows);
    bool good = true;
    for (size_t size = 0; size < m.size; size++) {
        good = rfa_png_decode(&image, "cut.png", m.bytes, (int64_t)size) == RFA_ERR_IO && good &&
               strncmp(rfa_error_text(), "cut.png: not a good PNG file: ", 30) == 0;
    }
    check(good);
    int refused = 0;
    for (size_t i = 0; i < m.size; i++) {
        m.bytes[i] ^= 0x41;
        const rfa_status status = rfa_png_decode(&image, "bad.png", m.bytes, (int64_t)m.size);
        good = good && (status == RFA_ERR_IO || (status == RFA_OK && image.width == WIDTH));
        refused += status != RFA_OK;
        m.bytes[i] ^= 0x41;
    }
    check(good && refused > (int)m.size / 2); // all but bytes of chunks that are left out
    rfa_image_free(&image);
}

// A head that promises a large picture must not take the memory.
static void large_pictures_are_refused(void **state)
{
    (void)state;
    static const unsigned char bomb[] = {
        0x89, 'P',  'N',  'G',  '\r', '\n', 0x1a, '\n', 0,   0,   0,   13,   'I',  'H',  'D',
        'R',  0,    0,    0x20, 0,    0,    0,    0x20, 0,   8,   0,   0,    0,    0,    0x0c,
        0x53, 0x3d, 0x22, 0,    0,    0,    0,    'I',  'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
    rfa_image image = {0};
    check_status(rfa_png_decode(&image, "bomb.png", bomb, sizeof bomb), RFA_ERR_IO);
    check(image.capacity == 0);
    rfa_image_free(&image);
}

// P19: both grey formulas.
static void grey_of_known_colours(void **state)
{
    (void)state;
    // By hand: 255 * (0.2989 + 0.5870 + 0.1140) = 254.97, times 255.5 / 255 = 255.47: 255 when cut.
    check(rfa_grey_value(RFA_GREY_TENSORFLOW, 255, 255, 255) == 255);
    check(rfa_grey_value(RFA_GREY_TENSORFLOW, 0, 0, 0) == 0);
    check(rfa_grey_value(RFA_GREY_TENSORFLOW, 255, 0, 0) == 76);  // 0.2989 * 255.5 = 76.37
    check(rfa_grey_value(RFA_GREY_TENSORFLOW, 0, 255, 0) == 149); // 149.98
    check(rfa_grey_value(RFA_GREY_TENSORFLOW, 0, 0, 255) == 29);  // 29.13
    check(rfa_grey_value(RFA_GREY_TENSORFLOW, 100, 100, 100) == 100);
    check(rfa_grey_value(RFA_GREY_PIL, 255, 255, 255) == 255);
    check(rfa_grey_value(RFA_GREY_PIL, 255, 0, 0) == 76);
    check(rfa_grey_value(RFA_GREY_PIL, 0, 255, 0) == 150); // 149.69 rounds
    check(rfa_grey_value(RFA_GREY_PIL, 0, 0, 255) == 29);
    // The formulas differ by 0 or 1, PIL's is the larger.
    int differ = 0, all = 0;
    bool near = true;
    for (int r = 0; r < 256; r += 5) {
        for (int g = 0; g < 256; g += 5) {
            for (int b = 0; b < 256; b += 5, all++) {
                const int d = rfa_grey_value(RFA_GREY_PIL, r, g, b) -
                              rfa_grey_value(RFA_GREY_TENSORFLOW, r, g, b);
                near = near && (d == 0 || d == 1);
                differ += d;
            }
        }
    }
    check(near && differ > all / 5 && differ < all * 3 / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_are_read),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(large_pictures_are_refused),
        cmocka_unit_test(grey_of_known_colours),
    };
    return test_main(tests);
}
