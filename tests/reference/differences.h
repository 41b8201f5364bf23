// Derivatives by central differences of fourth order, in double.
#ifndef TESTS_REFERENCE_DIFFERENCES_H
#define TESTS_REFERENCE_DIFFERENCES_H

#include <stddef.h>

// out[i] = d loss / d x[i] for i < n; x, which loss reads, is varied and put back. The error is
// about step^4 times a thirtieth of the fifth derivative, plus 2^-52 |loss| / step.
void ref_differences(double *out,
                     double *x,
                     ptrdiff_t n,
                     double step,
                     double (*loss)(const void *context),
                     const void *context);

#endif
