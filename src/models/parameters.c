#include "models/parameters.h"

#include "rng/rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

rfa_status rfa_parameters_add(rfa_parameters *table,
                              ptrdiff_t *offset,
                              ptrdiff_t rows,
                              ptrdiff_t columns,
                              rfa_init init,
                              double value,
                              const char *name_format,
                              ...)
{
    if (table->count == table->capacity) {
        const int capacity = table->capacity ? 2 * table->capacity : 64;
        rfa_parameter *list = NULL;
        RFA_TRY(rfa_alloc(&list, capacity, sizeof *list, "parameter table"));
        if (table->count > 0) {
            memcpy(list, table->list, (size_t)table->count * sizeof *list);
        }
        rfa_free(table->list);
        table->list = list;
        table->capacity = capacity;
    }
    rfa_parameter *entry = &table->list[table->count++];
    *entry = (rfa_parameter){
        .shape = {rows, columns},
        .init = init,
        .value = value,
        .decay = columns > 0,
        .offset = table->size,
        .count = rows * (columns > 0 ? columns : 1),
    };
    va_list args;
    va_start(args, name_format);
    vsnprintf(entry->name, sizeof entry->name, name_format, args);
    va_end(args);
    table->size += rfa_padded(entry->count);
    table->learned += entry->count;
    *offset = entry->offset;
    return RFA_OK;
}

void rfa_parameters_destroy(rfa_parameters *table)
{
    rfa_free(table->list);
    *table = (rfa_parameters){0};
}

rfa_status rfa_parameters_init(rfa_real *values, const rfa_parameters *table, uint64_t seed)
{
    memset(values, 0, (size_t)table->size * sizeof *values);
    for (int p = 0; p < table->count; p++) {
        const rfa_parameter *entry = &table->list[p];
        const rfa_rng stream = rfa_rng_stream(seed, RFA_RNG_INIT, (uint32_t)p, 0);
        rfa_real *out = values + entry->offset;
        if (entry->init == RFA_INIT_NORMAL) {
            double *normals = NULL;
            RFA_TRY(rfa_alloc(&normals, entry->count, sizeof *normals, "initial values"));
            rfa_rng_normals(normals, &stream, entry->count);
            for (ptrdiff_t i = 0; i < entry->count; i++) {
                out[i] = (rfa_real)(float)(entry->value * normals[i]);
            }
            rfa_free(normals);
            continue;
        }
        rfa_rng_reader reader = rfa_rng_reader_at(stream);
        for (ptrdiff_t i = 0; i < entry->count; i++) {
            const double unit =
                entry->init == RFA_INIT_UNIFORM ? 2 * rfa_rng_uniform(&reader) - 1 : 1;
            out[i] = (rfa_real)(float)(entry->value * unit);
        }
    }
    return RFA_OK;
}
