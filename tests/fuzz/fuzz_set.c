// Assignments of the command line, key=value.
#include "base/mem.h"
#include "config/config.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t held = rfa_mem_now();
    char *assignment = fuzz_text(data, size), *text = NULL;
    rfa_config config, copy;
    memset(&config, 0, sizeof config);
    rfa_config_defaults(&config);
    memcpy(&copy, &config, sizeof copy);
    const rfa_status status = rfa_config_set(&config, assignment);
    if (status == RFA_OK) { // what was set is in the canonical text, to the last bit
        char differences[64];
        PROMISE(strchr(assignment, '='));
        PROMISE(rfa_config_text(&text, &config) == RFA_OK);
        PROMISE(rfa_config_parse(&copy, text, "copy") == RFA_OK);
        PROMISE(rfa_config_differences(differences, sizeof differences, &config, &copy) == 0);
    } else {
        PROMISE(status == RFA_ERR_USAGE);
        PROMISE(strncmp(rfa_error_text(), "--set ", 6) == 0 && !strchr(rfa_error_text(), '\n'));
        PROMISE(fuzz_same(&config, &copy, sizeof config));
    }
    rfa_free(text);
    free(assignment);
    PROMISE(rfa_mem_now() == held);
    return 0;
}
