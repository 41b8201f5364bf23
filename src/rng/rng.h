// Counter-based random numbers: every value is a function of (seed, purpose, a, b, index) and of
// nothing else, so it does not depend on ranks, threads, padding or the order of calls.
// Philox4x32-10 of Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011.
#ifndef RFA_RNG_RNG_H
#define RFA_RNG_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    RFA_RNG_INIT = 1, // initial parameters: a = tensor
    RFA_RNG_POOL,     // pool of projections: a = matrix
    RFA_RNG_PICK,     // which matrices a step takes: a = step
    RFA_RNG_DROPOUT,  // a = step, b = (example of the batch, place in the network)
    RFA_RNG_SHUFFLE,  // order of an epoch: a = epoch
    RFA_RNG_LISTOPS,  // a = candidate tree
    RFA_RNG_TEST,
    RFA_RNG_FASTFOOD,        // diagonals and permutations: a = layer, b = head
    RFA_RNG_LARA,            // noise of proposals: a = step, b = example of the batch
    RFA_RNG_RA,              // samples of ra: a = step, b = (example of the batch, layer, head)
    RFA_RNG_EVA,             // noise of eva: the same
    RFA_RNG_BENCH,           // inputs of rfa bench: a = array, b = example
    RFA_RNG_PATHFINDER = 32, // a = picture
    RFA_RNG_RECALL,          // a = example, b = (split, attempt)
    RFA_RNG_FIDELITY = 48,   // of rfa fidelity: a = array, b = trial
} rfa_rng_purpose;

// A stream of 2^64 blocks of four 32-bit words.
typedef struct {
    uint32_t key[2], a, b;
} rfa_rng;

rfa_rng rfa_rng_stream(uint64_t seed, rfa_rng_purpose purpose, uint32_t a, uint32_t b);

// One block of four words.
void rfa_rng_block(uint32_t out[4], const rfa_rng *stream, uint64_t index);

// blocks consecutive blocks from index on, as 8 * blocks 16-bit words, ordered by block and, in it,
// as lo/hi halves of words 0 to 3. Vectorised: about 2 ns a block.
void rfa_rng_words16(uint16_t *out, const rfa_rng *stream, uint64_t index, ptrdiff_t blocks);

// out[i] for i < n: standard normal numbers (Box-Muller in double), two of each block, from block 0
// on, or from number first on.
void rfa_rng_normals(double *out, const rfa_rng *stream, ptrdiff_t n);
void rfa_rng_normals_at(double *out, const rfa_rng *stream, uint64_t first, ptrdiff_t n);

// A reader that walks a stream word by word.
typedef struct {
    rfa_rng stream;
    uint64_t index;
    uint32_t words[4];
    int left;
} rfa_rng_reader;

rfa_rng_reader rfa_rng_reader_at(rfa_rng stream);
uint32_t rfa_rng_next(rfa_rng_reader *reader);
uint32_t rfa_rng_below(rfa_rng_reader *reader, uint32_t bound); // uniform in [0, bound), unbiased
double rfa_rng_uniform(rfa_rng_reader *reader);                 // in [0, 1), 32 bits

#endif
