#include "exchange/halo.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/profile.h"

#include <string.h>

rfa_halo_reach rfa_halo_reach_of(const rfa_halo *halo, int example, int segment)
{
    const ptrdiff_t length = halo->lengths[example], w = halo->window;
    const ptrdiff_t begin = rfa_segment_begin(length, halo->segments, segment);
    const ptrdiff_t end = rfa_segment_begin(length, halo->segments, segment + 1);
    if (begin == end) {
        return (rfa_halo_reach){begin, end};
    }
    const ptrdiff_t last = (end - 1) / w * w; // first token of the last window
    return (rfa_halo_reach){
        .begin = begin / w * w,
        .end = !halo->after        ? end
               : length - last > w ? last + w
                                   : length,
    };
}

static ptrdiff_t tokens_of(const rfa_halo *halo, int example, int segment)
{
    return rfa_segment_begin(halo->lengths[example], halo->segments, segment + 1) -
           rfa_segment_begin(halo->lengths[example], halo->segments, segment);
}

void rfa_halo_fill(ptrdiff_t *row0, const rfa_halo *halo, int parts, int p)
{
    ptrdiff_t row = 0;
    for (int e = 0; e < halo->examples; e++) {
        for (int g = rfa_part_begin(halo->segments, parts, p);
             g < rfa_part_begin(halo->segments, parts, p + 1); g++) {
            const rfa_halo_reach reach = rfa_halo_reach_of(halo, e, g);
            *row0++ = row;
            row += reach.end - reach.begin - tokens_of(halo, e, g);
        }
    }
    *row0 = row;
}

// Rows of segment owner that segment reader reaches: [begin, begin + count) of the example.
typedef struct {
    int example, owner, reader;
    ptrdiff_t begin, count;
} overlap;

typedef void visitor(void *context, const overlap *rows);

// All rows that part `readers` reaches in part `owners`, in the order in which they cross.
static void
walk(const rfa_halo *halo, int parts, int owners, int readers, visitor *visit, void *context)
{
    const int G = halo->segments;
    const int first = rfa_part_begin(G, parts, owners), end = rfa_part_begin(G, parts, owners + 1);
    for (int e = 0; e < halo->examples; e++) {
        const ptrdiff_t length = halo->lengths[e];
        for (int g = rfa_part_begin(G, parts, readers); g < rfa_part_begin(G, parts, readers + 1);
             g++) {
            const rfa_halo_reach reach = rfa_halo_reach_of(halo, e, g);
            int s = g;
            while (s > first && rfa_segment_begin(length, G, s) > reach.begin) {
                s--;
            }
            for (s = s > first ? s : first; s < end && rfa_segment_begin(length, G, s) < reach.end;
                 s++) {
                const ptrdiff_t from = rfa_segment_begin(length, G, s);
                const ptrdiff_t to = rfa_segment_begin(length, G, s + 1);
                const ptrdiff_t begin = from > reach.begin ? from : reach.begin;
                const ptrdiff_t count = (to < reach.end ? to : reach.end) - begin;
                if (s != g && count > 0) {
                    visit(context, &(overlap){e, s, g, begin, count});
                }
            }
        }
    }
}

// What one call works with.
typedef struct {
    const rfa_halo *halo;
    int parts, part, first, own;
    rfa_leaf *leaves;  // [examples * own]
    ptrdiff_t *row0;   // [examples * own + 1] of halos
    int *count;        // [4][P] rows sent, their places, rows received, their places
    void *sent, *got;  // rows of row_bytes
    ptrdiff_t rows[2]; // sent and received
    ptrdiff_t cursor;  // of the walk that goes on
} traffic;

static void count_rows(void *context, const overlap *rows)
{
    traffic *x = context;
    x->cursor += rows->count;
}

// counts and places of what the other parts own (or read) of this one's rows; returns the total.
static ptrdiff_t count_all(traffic *x, int *count, bool as_owner)
{
    ptrdiff_t at = 0;
    for (int p = 0; p < x->parts; p++) {
        x->cursor = 0;
        walk(x->halo, x->parts, as_owner ? x->part : p, as_owner ? p : x->part, count_rows, x);
        count[p] = rfa_int(x->cursor);
        count[x->parts + p] = rfa_int(at);
        at += x->cursor;
    }
    return at;
}

static rfa_status traffic_create(traffic *x, size_t row_bytes, bool back)
{
    const rfa_halo *halo = x->halo;
    const ptrdiff_t leaves = (ptrdiff_t)halo->examples * x->own;
    RFA_TRY(rfa_alloc(&x->leaves, leaves, sizeof *x->leaves, "halo"));
    RFA_TRY(rfa_alloc(&x->row0, leaves + 1, sizeof *x->row0, "halo"));
    RFA_TRY(rfa_alloc(&x->count, 4 * (ptrdiff_t)x->parts, sizeof *x->count, "halo"));
    rfa_leaves_fill(x->leaves, halo->lengths, halo->examples, halo->segments, x->parts, x->part);
    rfa_halo_fill(x->row0, halo, x->parts, x->part);
    x->rows[0] = count_all(x, x->count, !back);
    x->rows[1] = count_all(x, x->count + 2 * x->parts, back);
    RFA_TRY(rfa_alloc(&x->sent, x->rows[0] + 1, row_bytes, "halo"));
    return rfa_alloc(&x->got, x->rows[1] + 1, row_bytes, "halo");
}

static void traffic_destroy(traffic *x)
{
    rfa_free(x->leaves);
    rfa_free(x->row0);
    rfa_free(x->count);
    rfa_free(x->sent);
    rfa_free(x->got);
}

static rfa_status traffic_begin(
    traffic *x, const rfa_halo *halo, const rfa_comm *sequence, size_t row_bytes, bool back)
{
    const int first = rfa_part_begin(halo->segments, sequence->size, sequence->rank);
    *x = (traffic){
        .halo = halo,
        .parts = sequence->size,
        .part = sequence->rank,
        .first = first,
        .own = rfa_part_begin(halo->segments, sequence->size, sequence->rank + 1) - first,
    };
    rfa_status status = rfa_fault("halo.memory", sequence, RFA_ERR_MEMORY);
    if (status == RFA_OK) {
        status = traffic_create(x, row_bytes, back);
    }
    status = rfa_agree(sequence, status);
    if (status != RFA_OK) {
        traffic_destroy(x);
        return status;
    }
    RFA_ASSERT(x->leaves && x->row0 && x->count && x->sent && x->got);
    return RFA_OK;
}

static void cross(traffic *x, size_t row_bytes, const rfa_comm *sequence, rfa_exchange_cost *cost)
{
    const int P = x->parts;
    const double start = rfa_now();
    MPI_Datatype row;
    MPI_Type_contiguous(rfa_int((ptrdiff_t)row_bytes), MPI_BYTE, &row);
    MPI_Type_commit(&row);
    MPI_Alltoallv(x->sent, x->count, x->count + P, row, x->got, x->count + 2 * P, x->count + 3 * P,
                  row, sequence->comm);
    MPI_Type_free(&row);
    if (P > 1) {
        cost->seconds += rfa_now() - start;
        cost->calls++;
        cost->messages += P - 1;
        cost->bytes_sent += (x->rows[0] - x->count[x->part]) * (int64_t)row_bytes;
    }
}

static ptrdiff_t owner_row(const traffic *x, const overlap *rows)
{
    const rfa_leaf *leaf = &x->leaves[rows->example * x->own + rows->owner - x->first];
    return leaf->row0 + rows->begin - leaf->begin;
}

static ptrdiff_t reader_row(const traffic *x, const overlap *rows)
{
    const int l = rows->example * x->own + rows->reader - x->first;
    const rfa_halo_reach reach = rfa_halo_reach_of(x->halo, rows->example, rows->reader);
    const ptrdiff_t skipped = rows->owner > rows->reader ? x->leaves[l].tokens : 0;
    return x->row0[l] + rows->begin - reach.begin - skipped;
}

typedef struct {
    traffic x;
    rfa_real *to;
    const rfa_real *from;
    ptrdiff_t ld, width;
} fetching;

static void pack(void *context, const overlap *rows)
{
    fetching *f = context;
    rfa_real *sent = (rfa_real *)f->x.sent + f->x.cursor * f->width;
    const rfa_real *from = f->from + owner_row(&f->x, rows) * f->ld;
    for (ptrdiff_t t = 0; t < rows->count; t++) {
        memcpy(sent + t * f->width, from + t * f->ld, (size_t)f->width * sizeof *sent);
    }
    f->x.cursor += rows->count;
}

static void unpack(void *context, const overlap *rows)
{
    fetching *f = context;
    memcpy(f->to + reader_row(&f->x, rows) * f->width,
           (const rfa_real *)f->x.got + f->x.cursor * f->width,
           (size_t)(rows->count * f->width) * sizeof *f->to);
    f->x.cursor += rows->count;
}

rfa_status rfa_halo_fetch(rfa_real *to,
                          const rfa_real *from,
                          ptrdiff_t ld,
                          ptrdiff_t width,
                          const rfa_halo *halo,
                          const rfa_comm *sequence,
                          rfa_exchange_cost *cost)
{
    RFA_PROFILE(RFA_PHASE_EXCHANGE);
    const size_t bytes = (size_t)width * sizeof *to;
    fetching f = {.to = to, .from = from, .ld = ld, .width = width};
    RFA_TRY(traffic_begin(&f.x, halo, sequence, bytes, false));
    f.x.cursor = 0;
    for (int p = 0; p < f.x.parts; p++) {
        walk(halo, f.x.parts, f.x.part, p, pack, &f);
    }
    cross(&f.x, bytes, sequence, cost);
    f.x.cursor = 0;
    for (int p = 0; p < f.x.parts; p++) {
        walk(halo, f.x.parts, p, f.x.part, unpack, &f);
    }
    traffic_destroy(&f.x);
    return RFA_OK;
}

typedef struct {
    traffic x;
    double *sums;
    const double *parts;
    ptrdiff_t width;
} returning;

static void pack_parts(void *context, const overlap *rows)
{
    returning *r = context;
    memcpy((double *)r->x.sent + r->x.cursor * r->width,
           r->parts + reader_row(&r->x, rows) * r->width,
           (size_t)(rows->count * r->width) * sizeof *r->sums);
    r->x.cursor += rows->count;
}

static void add_parts(void *context, const overlap *rows)
{
    returning *r = context;
    const double *got = (const double *)r->x.got + r->x.cursor * r->width;
    double *sums = r->sums + owner_row(&r->x, rows) * r->width;
    for (ptrdiff_t i = 0; i < rows->count * r->width; i++) {
        sums[i] += got[i];
    }
    r->x.cursor += rows->count;
}

// Parts hold ascending segments, so that walking them in order adds a row's terms in order.
rfa_status rfa_halo_return(double *sums,
                           const double *parts,
                           ptrdiff_t width,
                           const rfa_halo *halo,
                           const rfa_comm *sequence,
                           rfa_exchange_cost *cost)
{
    RFA_PROFILE(RFA_PHASE_EXCHANGE);
    const size_t bytes = (size_t)width * sizeof *sums;
    returning r = {.sums = sums, .parts = parts, .width = width};
    RFA_TRY(traffic_begin(&r.x, halo, sequence, bytes, true));
    r.x.cursor = 0;
    for (int p = 0; p < r.x.parts; p++) {
        walk(halo, r.x.parts, p, r.x.part, pack_parts, &r);
    }
    cross(&r.x, bytes, sequence, cost);
    r.x.cursor = 0;
    for (int p = 0; p < r.x.parts; p++) {
        walk(halo, r.x.parts, r.x.part, p, add_parts, &r);
    }
    traffic_destroy(&r.x);
    return RFA_OK;
}
