#include "tasks/fingerprint.h"

#include "base/mem.h"

__extension__ typedef unsigned __int128 wide;

rfa_fingerprint rfa_fingerprint_ids(const uint16_t *ids, ptrdiff_t length)
{
    const wide prime = (wide)1 << 88 | 0x13b;
    wide hash = (wide)0x6c62272e07bb0142u << 64 | 0x62b821756295c58du;
    for (ptrdiff_t i = 0; i < length; i++) {
        hash = (hash ^ (ids[i] & 0xff)) * prime;
        hash = (hash ^ (ids[i] >> 8)) * prime;
    }
    return (rfa_fingerprint){(uint64_t)(hash >> 64), (uint64_t)hash};
}

// Open addressing, linear probing, at most half full. The number is stored plus one, so that the
// zeroed slot is the empty one.
typedef struct {
    rfa_fingerprint fingerprint;
    int64_t number1;
} slot;

struct rfa_fingerprints {
    slot *slots;
    int64_t size; // a power of two
    int64_t count;
};

enum { FIRST_SIZE = 1024 };

rfa_status rfa_fingerprints_create(rfa_fingerprints **out)
{
    *out = NULL;
    rfa_fingerprints *set = NULL;
    rfa_status status = rfa_alloc(&set, 1, sizeof *set, "fingerprints");
    if (status == RFA_OK) {
        set->size = FIRST_SIZE;
        status = rfa_alloc(&set->slots, FIRST_SIZE, sizeof *set->slots, "fingerprints");
    }
    if (status != RFA_OK) {
        rfa_fingerprints_destroy(&set);
    }
    *out = set;
    return status;
}

void rfa_fingerprints_destroy(rfa_fingerprints **set)
{
    if (*set) {
        rfa_free((*set)->slots);
        rfa_free(*set);
        *set = NULL;
    }
}

// The slot of a fingerprint, or the empty one where it belongs.
static slot *find(slot *slots, int64_t size, rfa_fingerprint fingerprint)
{
    const uint64_t mask = (uint64_t)size - 1;
    uint64_t at = (fingerprint.low ^ fingerprint.high >> 32) & mask;
    while (slots[at].number1 != 0 && (slots[at].fingerprint.high != fingerprint.high ||
                                      slots[at].fingerprint.low != fingerprint.low)) {
        at = (at + 1) & mask;
    }
    return &slots[at];
}

rfa_status rfa_fingerprints_add(rfa_fingerprints *set,
                                rfa_fingerprint fingerprint,
                                int64_t number,
                                int64_t *former)
{
    *former = -1;
    if (2 * (set->count + 1) > set->size) {
        slot *slots = NULL;
        RFA_TRY(rfa_alloc(&slots, 2 * set->size, sizeof *slots, "fingerprints"));
        for (int64_t i = 0; i < set->size; i++) {
            if (set->slots[i].number1 != 0) {
                *find(slots, 2 * set->size, set->slots[i].fingerprint) = set->slots[i];
            }
        }
        rfa_free(set->slots);
        set->slots = slots;
        set->size *= 2;
    }
    slot *place = find(set->slots, set->size, fingerprint);
    if (place->number1 != 0) {
        *former = place->number1 - 1;
        return RFA_OK;
    }
    *place = (slot){fingerprint, number + 1};
    set->count++;
    return RFA_OK;
}

int64_t rfa_fingerprints_count(const rfa_fingerprints *set)
{
    return set->count;
}
