#include "cli/blas.h"

#include "tensor/gemm.h"

#include <stddef.h>
#include <string.h>

// Vector units: 3 AVX-512 as OpenBLAS wants it, 2 AVX2 with FMA, 1 AVX, 0 less.
static int processor_level(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
        return 3;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return 2;
    }
    return __builtin_cpu_supports("avx") ? 1 : 0;
}

// What an OpenBLAS kernel uses, by its name; -1 for unknown ones.
static int kernel_level(const char *kernel)
{
    static const struct {
        const char *name;
        int level;
    } kernels[] = {
        {"SkylakeX", 3},   {"Cooperlake", 3},  {"SapphireRapids", 3}, {"Haswell", 2},
        {"Zen", 2},        {"Excavator", 2},   {"Sandybridge", 1},    {"Bulldozer", 1},
        {"Piledriver", 1}, {"Steamroller", 1}, {"Nehalem", 0},        {"Prescott", 0},
        {"Core2", 0},      {"Penryn", 0},      {"Dunnington", 0},     {"Barcelona", 0},
        {"Bobcat", 0},     {"Katmai", 0},      {"Coppermine", 0},     {"Northwood", 0},
        {"Banias", 0},     {"Atom", 0},        {"Athlon", 0},         {"Opteron", 0},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (strcmp(kernels[i].name, kernel) == 0) {
            return kernels[i].level;
        }
    }
    return -1;
}

const char *rfa_blas_processor(void)
{
    static const char *const units[] = {"SSE", "AVX", "AVX2", "AVX-512"};
    return units[processor_level()];
}

bool rfa_blas_is_below(void)
{
    const char *kernel = strrchr(rfa_gemm_library(), ' ');
    const int used = kernel_level(kernel ? kernel + 1 : "");
    return used >= 0 && used < processor_level();
}
