// rfa VERB ...: starts MPI, runs one verb on all ranks, prints at most one error line, and exits
// with the code that says which kind of error it was (base/status.h).
#include "base/log.h"
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const rfa_verb rfa_verbs[] = {
    {"data", rfa_cmd_data, "make or import a data set"},
    {"train", rfa_cmd_train, "train a model, evaluate it, record the run"},
    {"eval", rfa_cmd_eval, "evaluate a trained run on a split"},
    {"inspect", rfa_cmd_inspect, "show a run, checkpoint or data file"},
    {"diff", rfa_cmd_diff, "name the step at which two runs part"},
    {"reproduce", rfa_cmd_reproduce, "run a record again and compare each step"},
    {"bench", rfa_cmd_bench, "measure parts beside the machine's ceilings"},
    {"fidelity", rfa_cmd_fidelity, "hold estimates of attention against the exact answer"},
    {"capture", rfa_cmd_capture, "write what the heads of a trained run see"},
    {"probe", rfa_cmd_probe, "read labels out of each layer of a trained run"},
    {"doctor", rfa_cmd_doctor, "check ranks, cores, libraries and files"},
    {"help", rfa_cmd_help, "help of a verb; the manual; completion for bash"},
    {NULL, NULL, NULL},
};

void rfa_usage(void)
{
    rfa_print("usage: rfa VERB ... (rfa VERB --help says more)");
    for (const rfa_verb *verb = rfa_verbs; verb->name; verb++) {
        rfa_print("  %-9s %s", verb->name, verb->help);
    }
    rfa_print("\nexamples:\n"
              "  rfa data listops\n"
              "  mpirun -n 2 rfa train configs/lra/listops/rfa.yaml\n"
              "  rfa inspect runs/rfa.h5");
}

// Whether a launcher that MPI knows started this process. To be asked before MPI_Init, which sets
// some of these variables itself.
static bool is_launched(void)
{
    return getenv("PMIX_RANK") || getenv("PMI_RANK") || getenv("PMI2_RANK") ||
           getenv("OMPI_COMM_WORLD_SIZE");
}

// A launcher that MPI does not know starts P processes that each believe to be alone: they would do
// the same work P times and write over each other. Only a scheduler's variables give them away.
static rfa_status check_launcher(const rfa_comm *world, bool launched)
{
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
    if (world->size == 1 && !launched && tasks && strtol(tasks, NULL, 10) > 1) {
        return rfa_fail(RFA_ERR_USAGE,
                        "SLURM started %s tasks, but MPI sees one rank: use srun --mpi=pmix, or "
                        "mpirun",
                        tasks);
    }
    return RFA_OK;
}

static rfa_status run(const rfa_comm *world, bool launched, int argc, char **argv)
{
    RFA_TRY(check_launcher(world, launched));
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        rfa_usage();
        return argc < 2 ? rfa_fail(RFA_ERR_USAGE, "no verb given") : RFA_OK;
    }
    char names[256] = "";
    for (const rfa_verb *verb = rfa_verbs; verb->name; verb++) {
        const size_t used = strlen(names);
        if (strcmp(argv[1], verb->name) == 0) {
            return verb->run(world, argc - 1, argv + 1);
        }
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", verb->name);
    }
    return rfa_fail(RFA_ERR_USAGE, "no verb '%s': %s", argv[1], names);
}

int main(int argc, char **argv)
{
    int provided = 0;
    rfa_comm world;
    const bool launched = is_launched();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    rfa_comm_create(&world, MPI_COMM_WORLD);
    rfa_log_init(&world);
    rfa_status_init(&world);
    const rfa_status status = run(&world, launched, argc, argv);
    if (status == RFA_STOPPED) {
        rfa_note("rfa: %s", rfa_error_text());
    } else if (status != RFA_OK && rfa_error_text()[0]) { // without: diff's answer is on stdout
        rfa_error_line(rfa_error_text());
    }
    rfa_comm_destroy(&world);
    MPI_Finalize();
    return (int)status;
}
