// Configuration text. A text that is refused changes nothing and says where; one that is taken
// comes back the same from its canonical form.
#include "base/mem.h"
#include "config/config.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

static void check_taken(const rfa_config *config)
{
    char *text = NULL, *again = NULL;
    rfa_config copy;
    rfa_config_defaults(&copy);
    PROMISE(rfa_config_text(&text, config) == RFA_OK);
    PROMISE(rfa_config_parse(&copy, text, "copy") == RFA_OK);
    PROMISE(rfa_config_text(&again, &copy) == RFA_OK);
    PROMISE(strcmp(text, again) == 0);
    char differences[64];
    PROMISE(rfa_config_differences(differences, sizeof differences, config, &copy) == 0);
    const rfa_status status = rfa_config_check(config);
    PROMISE(status == RFA_OK || status == RFA_ERR_USAGE);
    rfa_free(text);
    rfa_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t held = rfa_mem_now();
    char *text = fuzz_text(data, size);
    rfa_config config, before;
    memset(&config, 0, sizeof config); // padding too, for fuzz_same
    rfa_config_defaults(&config);
    memcpy(&before, &config, sizeof before);
    const rfa_status status = rfa_config_parse(&config, text, "name.yaml");
    if (status == RFA_OK) {
        check_taken(&config);
    } else {
        PROMISE(status == RFA_ERR_USAGE);
        PROMISE(strncmp(rfa_error_text(), "name.yaml:", 10) == 0);
        PROMISE(!strchr(rfa_error_text(), '\n'));
        PROMISE(fuzz_same(&config, &before, sizeof config));
    }
    free(text);
    PROMISE(rfa_mem_now() == held);
    return 0;
}
