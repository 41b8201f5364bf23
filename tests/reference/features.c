#include "reference/features.h"

#include <math.h>
#include <stdlib.h>

static const double norm_epsilon = 1e-3;

static double dot(const double *a, const double *b, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static double *numbers(ptrdiff_t n)
{
    double *x = calloc((size_t)n, sizeof *x);
    if (!x) {
        abort();
    }
    return x;
}

ptrdiff_t ref_map_count(const ref_map *map)
{
    return map->kind == RFA_MAP_GAUSSIAN ? 2 * map->D : map->kind == RFA_MAP_ELU ? map->d : map->D;
}

void ref_map_scaled(double *y, const double *x, const ref_map *map)
{
    const double norm = sqrt(dot(x, x, map->d));
    for (ptrdiff_t j = 0; j < map->d; j++) {
        const double u =
            map->unit_norm ? x[j] / (norm + norm_epsilon) : x[j] * pow((double)map->d, -0.25);
        y[j] = map->kind == RFA_MAP_ELU ? x[j] : map->sigma ? map->sigma[j] * u : u;
    }
}

void ref_map_products(double *product, const double *x, const ref_map *map)
{
    double *y = numbers(map->d);
    ref_map_scaled(y, x, map);
    if (map->kind == RFA_MAP_ELU) {
        for (ptrdiff_t j = 0; j < map->d; j++) {
            product[j] = y[j];
        }
    } else {
        for (ptrdiff_t f = 0; f < map->D; f++) {
            product[f] = dot(map->w + f * map->d, y, map->d);
        }
    }
    free(y);
}

// The exponents l [D] of positive and oprf.
static void exponents(double *l, const double *x, const ref_map *map)
{
    ref_map_products(l, x, map);
    for (ptrdiff_t f = 0; map->kind == RFA_MAP_OPRF && f < map->D; f++) {
        const double *row = map->w + f * map->d;
        l[f] = map->a * dot(row, row, map->d) + sqrt(1 - 4 * map->a) * l[f];
    }
}

double ref_map_greatest(const double *x, const ref_map *map)
{
    if (map->kind != RFA_MAP_POSITIVE && map->kind != RFA_MAP_OPRF) {
        return 0;
    }
    double *l = numbers(map->D), most = -INFINITY;
    exponents(l, x, map);
    for (ptrdiff_t f = 0; f < map->D; f++) {
        most = fmax(most, l[f]);
    }
    free(l);
    return most;
}

void ref_map_features(
    double *feature, const double *x, bool is_key, double shift, const ref_map *map)
{
    const ptrdiff_t d = map->d, D = map->D;
    double *y = numbers(d), *p = numbers(D > d ? D : d);
    ref_map_scaled(y, x, map);
    const double half = is_key ? dot(y, y, d) / 2 : 0, scale = 1 / sqrt((double)D);
    switch (map->kind) {
    case RFA_MAP_GAUSSIAN:
        ref_map_products(p, x, map);
        for (ptrdiff_t f = 0; f < D; f++) {
            const double weight = exp((map->unit_norm ? 0 : half) - shift);
            feature[f] = weight * scale * sin(p[f]);
            feature[D + f] = weight * scale * cos(p[f]);
        }
        break;
    case RFA_MAP_ARCCOS:
        ref_map_products(p, x, map);
        for (ptrdiff_t f = 0; f < D; f++) {
            feature[f] = exp(-shift) * scale * fmax(p[f], 0);
        }
        break;
    case RFA_MAP_POSITIVE:
    case RFA_MAP_OPRF:
        exponents(p, x, map);
        for (ptrdiff_t f = 0; f < D; f++) {
            feature[f] = scale * exp(p[f] - half - shift);
        }
        break;
    case RFA_MAP_ELU:
        for (ptrdiff_t j = 0; j < d; j++) {
            feature[j] = exp(-shift) * (x[j] > 0 ? x[j] + 1 : exp(x[j]));
        }
        break;
    }
    free(y);
    free(p);
}
