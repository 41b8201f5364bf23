// Queries, keys and values that the attention of a trained run sees, as a file of heads.
#ifndef RFA_PROBE_CAPTURE_H
#define RFA_PROBE_CAPTURE_H

#include "storage/heads_write.h"
#include "train/session.h"

typedef struct {
    const char *path;
    int64_t examples; // the first so many of those that are long enough
    int64_t example;  // >= 0: this one alone
    int64_t tokens;   // examples are cut to so many; 0: to the shortest one that is captured
    int layer;        // -1: all
    const rfa_attributes *attributes; // on rank 0
    const char *config_text;          // on rank 0
} rfa_capture;

// Runs the examples, cut, in evaluation mode and writes what the layers' heads see: queries and
// keys as projected from the normed input, before a kind scales, norms or maps them, whatever the
// kind: softmax takes exp(q . k / sqrt(d)). The model of session sees tokens 0 .. N - 1 and nothing
// behind them, so that each layer's input is that of an example of N tokens. *heads, *tokens: of
// the file. The bits are the same for any number of ranks. RFA_ERR_USAGE for examples, layers and
// lengths that there aren't. Collective.
RFA_NODISCARD rfa_status rfa_capture_run(int64_t *heads,
                                         int64_t *tokens,
                                         rfa_session *session,
                                         const rfa_comm *world,
                                         const rfa_capture *capture);

#endif
