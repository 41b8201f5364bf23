// A 64-bit digest of bytes at memory speed: tells two arrays apart that differ anywhere. Not
// cryptographic. It is the "digest" of parameters after each step and of data sets.
#ifndef RFA_STORAGE_DIGEST_H
#define RFA_STORAGE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

// Digest of n bytes, the same on any byte order and alignment. seed_or_previous: 0 to begin, or the
// digest of what came before: digests chain, digest(digest(0, a), b), where the cut between a and b
// counts, and so does an empty b. Local; about 50 microseconds a MiB.
uint64_t rfa_digest(uint64_t seed_or_previous, const void *bytes, size_t n);

#endif
