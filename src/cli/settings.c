#include "cli/settings.h"

#include "base/log.h"

int rfa_next_option(int argc, char **argv, const struct option *options)
{
    opterr = 0;
    return getopt_long(argc, argv, ":h", options, NULL);
}

rfa_status rfa_bad_option(char **argv)
{
    if (optopt > 0 && optopt < 256) { // a letter; long options are numbered from 256 on
        return rfa_fail(RFA_ERR_USAGE,
                        "unknown option '-%c' (long options take two dashes): rfa %s --help",
                        optopt, argv[0]);
    }
    return rfa_fail(RFA_ERR_USAGE, "%s '%s': rfa %s --help",
                    optopt ? "a value is missing or unwanted in" : "unknown option",
                    argv[optind - 1], argv[0]);
}

void rfa_print_lines(const char *const *lines)
{
    for (; *lines; lines++) {
        rfa_print("%s", *lines);
    }
}

rfa_status rfa_settings_add(rfa_settings *settings, const char *assignment)
{
    if (settings->count == RFA_MOST_SETTINGS) {
        return rfa_fail(RFA_ERR_USAGE, "more than %d --set", RFA_MOST_SETTINGS);
    }
    settings->assignment[settings->count++] = assignment;
    return RFA_OK;
}

static rfa_status load(rfa_config *config, const rfa_settings *settings)
{
    if (settings->file) {
        RFA_TRY(rfa_config_load(config, settings->file));
    }
    for (int i = 0; i < settings->count; i++) {
        RFA_TRY(rfa_config_set(config, settings->assignment[i]));
    }
    return rfa_config_check(config);
}

rfa_status
rfa_settings_load(rfa_config *config, const rfa_settings *settings, const rfa_comm *world)
{
    if (settings->file) {
        rfa_config_defaults(config);
    }
    RFA_TRY(rfa_agree(world, world->rank == 0 ? load(config, settings) : RFA_OK));
    MPI_Bcast(config, (int)sizeof *config, MPI_BYTE, 0, world->comm); // plain numbers and texts
    return RFA_OK;
}
