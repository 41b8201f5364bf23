#include "base/metrics.h"

#include <math.h>

rfa_interval rfa_wilson(int64_t correct, int64_t n)
{
    const double z = 1.959963984540054, N = (double)n, p = (double)correct / N;
    const double middle = (p + z * z / (2 * N)) / (1 + z * z / N);
    const double half = z * sqrt(p * (1 - p) / N + z * z / (4 * N * N)) / (1 + z * z / N);
    return (rfa_interval){fmax(middle - half, 0), fmin(middle + half, 1)};
}

double rfa_macro_f1(const int64_t *confusion, int classes)
{
    double sum = 0;
    int there = 0;
    for (int c = 0; c < classes; c++) {
        int64_t row = 0, column = 0;
        for (int d = 0; d < classes; d++) {
            row += confusion[c * classes + d];
            column += confusion[d * classes + c];
        }
        if (row + column > 0) {
            sum += 2 * (double)confusion[c * classes + c] / (double)(row + column);
            there++;
        }
    }
    return there > 0 ? sum / there : NAN;
}

int64_t rfa_majority(const int64_t *confusion, int classes)
{
    int64_t most = 0;
    for (int c = 0; c < classes; c++) {
        int64_t row = 0;
        for (int d = 0; d < classes; d++) {
            row += confusion[c * classes + d];
        }
        most = row > most ? row : most;
    }
    return most;
}
