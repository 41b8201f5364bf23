// PNG files: what is taken is a picture of one or three channels within the limits.
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "tasks/png.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t held = rfa_mem_now();
    rfa_image image = {0};
    const rfa_status status = rfa_png_decode(&image, "x.png", data, (int64_t)size);
    if (status == RFA_OK) {
        PROMISE(image.width >= 1 && image.width <= RFA_IMAGE_SIDE);
        PROMISE(image.height >= 1 && image.height <= RFA_IMAGE_SIDE);
        PROMISE(image.channels == 1 || image.channels == 3);
        PROMISE(image.capacity >= (int64_t)image.width * image.height * image.channels);
    } else {
        PROMISE(status == RFA_ERR_MEMORY || strncmp(rfa_error_text(), "x.png: ", 7) == 0);
    }
    rfa_image_free(&image);
    PROMISE(rfa_mem_now() == held);
    return 0;
}
