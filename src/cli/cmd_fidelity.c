#include "fidelity/run.h"

#include "base/log.h"
#include "cli/commands.h"
#include "cli/fidelity_record.h"
#include "cli/settings.h"
#include "storage/benchfile.h"
#include "tensor/gemm.h"

#include <getopt.h>
#include <stdio.h>

static const char *const help[] = {
    "usage: rfa fidelity [CONFIG.yaml] [--heads FILE.h5] [--set key=value]... [--out FILE.h5]",
    "",
    "Exact softmax attention beside its estimates, on all ranks: N x N matrices dealt over a near-",
    "square grid of processes, in double, by ScaLAPACK; estimates by the kernels that train.",
    "",
    "  --heads FILE.h5  queries, keys and values that rfa capture wrote (fidelity.file), not",
    "                   seeded ensembles (fidelity.ensembles, norms, length, width)",
    "  --set key=value  changes one key; section fidelity, and train.seed",
    "  --out FILE.h5    also a file of all results, which must not be there yet",
    "",
    "For each head, kind (fidelity.kinds) and number of features F (fidelity.features), medians",
    "over fidelity.trials draws of",
    "  error     mean square of the output's error over that of the exact output, and the",
    "            95 % band of the mean over draws",
    "  matrix    |A - B| / |A| in Frobenius' norm, of the exact matrix A and the estimate's B",
    "  best      the least that any matrix of rank F reaches (fidelity.spectrum)",
    "  rows      the same of single rows, median",
    "  negative  share of denominators that are not positive; floored: that were clamped",
    "then seconds of each phase, and its rate beside that of PDGEMM on the same grid.",
    "",
    "The matrices take 16 N^2 / P bytes a rank on P ranks (half without fidelity.matrix), and each",
    "rank 80 N d more.",
    "",
    "  mpirun -n 4 rfa fidelity configs/fidelity/ensembles.yaml --out ensembles.h5",
    "  mpirun -n 4 rfa fidelity configs/fidelity/captured.yaml --heads heads.h5 --out s.h5",
    NULL,
};

static rfa_status fidelity(const rfa_comm *world, const rfa_config *config, const char *path)
{
    rfa_fidelity f;
    if (path) {
        RFA_TRY(rfa_agree(world, world->rank == 0 ? rfa_benchfile_check(path) : RFA_OK));
    }
    RFA_TRY(rfa_agree(world, rfa_gemm_start() ? RFA_OK
                                              : rfa_fail(RFA_ERR_INTERNAL,
                                                         "%s computes wrong products on this "
                                                         "processor",
                                                         rfa_gemm_library())));
    rfa_note("%d rank%s, %s", world->size, world->size > 1 ? "s" : "", rfa_gemm_library());
    RFA_TRY(rfa_fidelity_run(&f, config, world));
    rfa_fidelity_print(&f);
    const rfa_status status = path ? rfa_fidelity_write(&f, path, config, world) : RFA_OK;
    rfa_fidelity_destroy(&f);
    return status;
}

rfa_status rfa_cmd_fidelity(const rfa_comm *world, int argc, char **argv)
{
    enum { SET = 256, HEADS, OUT, HELP = 'h' };
    static const struct option options[] = {
        {"set", required_argument, NULL, SET},
        {"heads", required_argument, NULL, HEADS},
        {"out", required_argument, NULL, OUT},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    rfa_settings settings = {0};
    char heads[RFA_CONFIG_TEXT];
    const char *path = NULL;
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case SET: RFA_TRY(rfa_settings_add(&settings, optarg)); break;
        case HEADS:
            snprintf(heads, sizeof heads, "fidelity.file=%.480s", optarg);
            RFA_TRY(rfa_settings_add(&settings, heads));
            break;
        case OUT: path = optarg; break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (argc - optind > 1) {
        return rfa_fail(RFA_ERR_USAGE, "fidelity takes one configuration, not '%s' too",
                        argv[optind + 1]);
    }
    settings.file = optind < argc ? argv[optind] : NULL;
    rfa_config config;
    rfa_config_defaults(&config);
    RFA_TRY(rfa_settings_load(&config, &settings, world));
    return fidelity(world, &config, path);
}
