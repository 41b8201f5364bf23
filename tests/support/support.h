// What all unit tests share: the world, assertions that every rank takes alike, small numbers.
#ifndef TESTS_SUPPORT_SUPPORT_H
#define TESTS_SUPPORT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/status.h"
#include "tensor/shapes.h"

// Everything that MPI_Init gives; set by test_main.
extern rfa_comm test_world;

// Runs the group on every rank between MPI_Init and MPI_Finalize; rank 0 alone prints.
int test_main_(const char *name, const struct CMUnitTest *tests, size_t count);
#define test_main(tests) test_main_(__FILE__, tests, sizeof(tests) / sizeof((tests)[0]))

// A plain assert on one rank leaves the others waiting in the next collective: these reduce first.
// Collective.
void check_(bool good, const char *text, const char *file, int line);
#define check(condition) check_((condition), #condition, __FILE__, __LINE__)
#define check_ok(call) check_status_((call), RFA_OK, #call, __FILE__, __LINE__)
#define check_status(call, code) check_status_((call), (code), #call, __FILE__, __LINE__)
void check_status_(rfa_status got, rfa_status want, const char *text, const char *file, int line);

// max |a - b| <= bound, and neither has NaN; prints the observed maximum with what on failure.
#define check_close(what, a, b, n, bound) check_close_(what, a, b, n, bound, __FILE__, __LINE__)
void check_close_(const char *what,
                  const rfa_real *a,
                  const double *b,
                  ptrdiff_t n,
                  double bound,
                  const char *file,
                  int line);

// Rounding unit of rfa_real.
double test_eps(void);

// out[i] = scale * a standard normal number that depends on (seed, i) only, the same in float
// (rounded) and double.
void test_fill(rfa_real *out, ptrdiff_t n, uint32_t seed, double scale);

// Allocates count zeroed elements or fails the test.
rfa_real *test_reals(ptrdiff_t count);
double *test_doubles(ptrdiff_t count);

#endif
