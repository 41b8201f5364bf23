#include "base/log.h"
#include "cli/fidelity_record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELL = 16 };

static const char *cell(char text[CELL], double value)
{
    snprintf(text, CELL, isnan(value) ? "-" : "%.2g", value);
    return text;
}

// One line a kind and number of features: medians over trials.
static void print_case(const rfa_fidelity *f, int g, int c)
{
    char best[CELL] = "", rank[CELL] = "", t[6][CELL];
    const ptrdiff_t head = (ptrdiff_t)g * f->cases + c;
    cell(rank, f->exact_rank[head]);
    if (f->captured) {
        rfa_print("%s head %d (layer %lld, head %lld, example %lld): norm %.3g, power of the "
                  "output %.3g, effective rank %s",
                  f->group[g], c, (long long)f->heads.layer[c], (long long)f->heads.head[c],
                  (long long)f->heads.example[c], f->norm[head],
                  f->power[(ptrdiff_t)g * f->trials * f->cases + c], rank);
    } else {
        rfa_print("%s, norm %g: power of the output %.3g, effective rank %s", f->group[g],
                  f->scale[c], f->power[(ptrdiff_t)g * f->trials * f->cases + c], rank);
    }
    rfa_print("  %-28s %6s %9s %19s %9s %9s %9s %9s %9s", "kind", "F", "error", "95 % of the mean",
              "matrix", "best", "rows", "negative", "floored");
    for (int k = 0; k < f->kinds; k++) {
        for (int i = 0; i < f->features; i++) {
            const rfa_fidelity_summary output =
                rfa_fidelity_summarise(f, g, k, i, c, RFA_FIDELITY_OUTPUT_ERROR);
            char band[2 * CELL + 4];
            snprintf(band, sizeof band, isnan(output.low) ? "-" : "%.2g to %.2g", output.low,
                     output.high);
            static const rfa_fidelity_statistic shown[] = {
                RFA_FIDELITY_FROBENIUS, RFA_FIDELITY_ROW_MEDIAN, RFA_FIDELITY_NEGATIVE,
                RFA_FIDELITY_FLOORED};
            for (int j = 0; j < 4; j++) {
                cell(t[j], rfa_fidelity_summarise(f, g, k, i, c, shown[j]).median);
            }
            cell(best, f->best[((ptrdiff_t)g * f->features + i) * f->cases + c]);
            rfa_print("  %-28s %6.0f %9s %19s %9s %9s %9s %9s %9s", f->kind[k].name, f->feature[i],
                      cell(t[4], output.median), band, t[0], best, t[1], t[2], t[3]);
        }
    }
}

void rfa_fidelity_print(const rfa_fidelity *f)
{
    for (int g = 0; g < f->groups; g++) {
        for (int c = 0; c < f->cases; c++) {
            print_case(f, g, c);
        }
    }
    rfa_print("%-10s %10s %10s %8s", "phase", "seconds", "GFLOP/s", "PDGEMM%");
    for (int p = 0; p < RFA_FIDELITY_PHASES; p++) {
        const double seconds = f->clock.seconds[p], rate = f->clock.flops[p] / seconds;
        if (f->clock.flops[p] > 0 && seconds > 0) {
            rfa_print("%-10s %10.3f %10.2f %8.1f", rfa_fidelity_phase_name((rfa_fidelity_phase)p),
                      seconds, rate / 1e9, 100 * rate / f->ceiling);
        } else {
            rfa_print("%-10s %10.3f %10s %8s", rfa_fidelity_phase_name((rfa_fidelity_phase)p),
                      seconds, "-", "-");
        }
    }
    rfa_print("PDGEMM on %d x %d processes: %.2f GFLOP/s", f->rows, f->columns, f->ceiling / 1e9);
}
