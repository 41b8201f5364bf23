// Ranks: 1
// Precision: f32
#include "support/support.h"

#include "base/log.h"
#include "base/profile.h"
#include "tensor/gemm.h"

#include <math.h>
#include <omp.h>
#include <string.h>

// Works for about 2 ms; what passed goes to *spent.
static void spin(double *spent)
{
    const double start = rfa_now();
    double now = start;
    while (now < start + 2e-3) {
        now = rfa_now();
    }
    *spent += now - start;
}

// A phase has at least what was spent in it (the clock was looked at outside of that), and all of
// them have the length of the stretch: so that nothing counts twice.
static void check_profile(const double spent[RFA_PHASES], double shortest, double longest)
{
    rfa_profile profile;
    double sum = 0;
    check(rfa_profile_read(&profile, 1));
    for (int p = 0; p < RFA_PHASES; p++) {
        check(profile.seconds[p] >= spent[p] - 1e-9);
        sum += profile.seconds[p];
    }
    check(sum >= shortest - 1e-9 && sum <= longest + 1e-9);
    for (int p = 0; p < RFA_PHASES; p++) { // and a phase that nobody entered has nothing
        check(p == RFA_PHASE_REST || spent[p] > 0 || profile.seconds[p] == 0);
    }
}

static void inner(double spent[RFA_PHASES], bool early)
{
    RFA_PROFILE(RFA_PHASE_FEATURES);
    spin(&spent[RFA_PHASE_FEATURES]);
    if (early) {
        return; // the mark ends by return, too
    }
    {
        RFA_PROFILE(RFA_PHASE_EXCHANGE);
        spin(&spent[RFA_PHASE_EXCHANGE]);
    }
    spin(&spent[RFA_PHASE_FEATURES]);
}

static void outer(double spent[RFA_PHASES])
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    spin(&spent[RFA_PHASE_ATTENTION]);
    inner(spent, true);
    inner(spent, false);
    RFA_PROFILE(RFA_PHASE_ATTENTION); // of the same kind: nothing changes
    spin(&spent[RFA_PHASE_ATTENTION]);
}

static void test_nested_phases_exclude_each_other(void **state)
{
    (void)state;
    double spent[RFA_PHASES] = {0}, shortest = 0, longest = 0;
    rfa_profile_clear();
    for (int stretch = 0; stretch < 2; stretch++) {
        const double start = rfa_now();
        rfa_profile_begin();
        const double inside = rfa_now();
        spin(&spent[RFA_PHASE_REST]);
        outer(spent);
        spin(&spent[RFA_PHASE_REST]);
        shortest += rfa_now() - inside;
        rfa_profile_end();
        longest += rfa_now() - start;
        outer((double[RFA_PHASES]){0}); // between stretches: not counted
    }
    check_profile(spent, shortest, longest);
}

static void test_a_stretch_ends_with_its_block(void **state)
{
    (void)state;
    rfa_profile profile;
    rfa_profile_clear();
    for (int wanted = 0; wanted < 2; wanted++) {
        {
            RFA_PROFILE_STRETCH(wanted);
            outer((double[RFA_PHASES]){0});
            check(rfa_profile_on == wanted);
        }
        check(!rfa_profile_on);
        check(rfa_profile_read(&profile, 1) == wanted);
        check((profile.seconds[RFA_PHASE_FEATURES] > 0) == wanted);
    }
    rfa_profile_clear();
    check(!rfa_profile_read(&profile, 1));
    check(profile.seconds[RFA_PHASE_FEATURES] == 0);
}

static void test_threads_add_up(void **state)
{
    (void)state;
    double spent[2][RFA_PHASES] = {0}, length = 0;
    rfa_profile profile;
    rfa_profile_clear();
    {
        RFA_PROFILE_STRETCH(true);
        const double start = rfa_now();
        RFA_PROFILE(RFA_PHASE_SUMS);
#pragma omp parallel num_threads(2)
        outer(spent[omp_get_thread_num()]);
        length = rfa_now() - start;
    }
    check(rfa_profile_read(&profile, 2));
    const rfa_phase shared[] = {RFA_PHASE_ATTENTION, RFA_PHASE_FEATURES, RFA_PHASE_EXCHANGE};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        check(spent[1][shared[i]] > 0);
        check(profile.seconds[shared[i]] >= spent[0][shared[i]] + spent[1][shared[i]] - 1e-9);
    }
    for (int p = 0; p < RFA_PHASES; p++) {
        sum += profile.seconds[p];
    }
    check(sum >= 2 * length - 1e-9);
    check(profile.seconds[RFA_PHASE_REST] >= -1e-9); // the second thread before and after
}

static void test_flops_go_to_the_phase_that_multiplies(void **state)
{
    (void)state;
    rfa_real a[8 * 8] = {0}, c[8 * 8];
    rfa_profile profile;
    rfa_profile_clear();
    rfa_gemm(RFA_N, RFA_N, 8, 8, 8, 1, a, 8, a, 8, 0, c, 8); // before: not counted
    {
        RFA_PROFILE_STRETCH(true);
        rfa_gemm(RFA_N, RFA_N, 2, 3, 4, 1, a, 8, a, 8, 0, c, 8);
        RFA_PROFILE(RFA_PHASE_PRODUCTS);
        rfa_gemm(RFA_N, RFA_N, 8, 8, 8, 1, a, 8, a, 8, 0, c, 8);
        {
            RFA_PROFILE(RFA_PHASE_FEATURES);
            rfa_gemm(RFA_N, RFA_N, 8, 8, 4, 1, a, 8, a, 8, 0, c, 8);
        }
        rfa_gemm(RFA_N, RFA_N, 8, 8, 8, 1, a, 8, a, 8, 0, c, 8);
    }
    check(rfa_profile_read(&profile, 1));
    check(profile.flops[RFA_PHASE_REST] == 2 * 2 * 3 * 4);
    check(profile.flops[RFA_PHASE_PRODUCTS] == 2 * 2 * 8 * 8 * 8);
    check(profile.flops[RFA_PHASE_FEATURES] == 2 * 8 * 8 * 4);
    check(profile.flops[RFA_PHASE_ATTENTION] == 0);
}

static void test_every_phase_has_its_own_name(void **state)
{
    (void)state;
    for (int p = 0; p < RFA_PHASES; p++) {
        check(rfa_phase_name((rfa_phase)p) != NULL);
        for (int q = 0; q < p; q++) {
            check(strcmp(rfa_phase_name((rfa_phase)p), rfa_phase_name((rfa_phase)q)) != 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested_phases_exclude_each_other),
        cmocka_unit_test(test_a_stretch_ends_with_its_block),
        cmocka_unit_test(test_threads_add_up),
        cmocka_unit_test(test_flops_go_to_the_phase_that_multiplies),
        cmocka_unit_test(test_every_phase_has_its_own_name),
    };
    return test_main(tests);
}
