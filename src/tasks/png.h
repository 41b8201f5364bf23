// Pictures: PNG files by libpng, and grey from colour.
#ifndef RFA_TASKS_PNG_H
#define RFA_TASKS_PNG_H

#include "base/status.h"

#include <stdint.h>

enum { RFA_IMAGE_SIDE = 4096 }; // longest side of a picture

// A picture, row by row: grey values, or red, green and blue of each pixel.
typedef struct {
    int width, height, channels; // channels: 1 or 3
    unsigned char *values;       // [height][width][channels]
    int64_t capacity;            // bytes; grows
} rfa_image;

// Decodes a PNG of size bytes: 8 bits a value, transparency left out, palettes resolved, no
// correction by gamma, as PIL reads it. name: of the file, for texts. RFA_ERR_IO. Local.
RFA_NODISCARD rfa_status rfa_png_decode(rfa_image *image,
                                        const char *name,
                                        const unsigned char *bytes,
                                        int64_t size);
void rfa_image_free(rfa_image *image); // idempotent; start with all zero

// Grey from red, green and blue. TENSORFLOW: rgb_to_grayscale of TensorFlow between conversions to
// float and back, which LRA's pipeline has: x / 255 in float, 0.2989 R + 0.5870 G + 0.1140 B, times
// 255.5, cut. PIL: convert("L") of PIL and torchvision: (19595 R + 38470 G + 7471 B + 32768) >> 16.
typedef enum { RFA_GREY_TENSORFLOW, RFA_GREY_PIL } rfa_grey;
unsigned char rfa_grey_value(rfa_grey formula, int red, int green, int blue);

#endif
