// The configuration of a run: one table of keys is the parser, the defaults, the help and the saved
// copy.
#ifndef RFA_CONFIG_CONFIG_H
#define RFA_CONFIG_CONFIG_H

#include "base/kinds.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { RFA_CONFIG_TEXT = 512 };

typedef struct {
    struct {
        char file[RFA_CONFIG_TEXT]; // HDF5 data set
        int64_t max_length;         // tokens; longer examples are cut
    } data;
    struct {
        int64_t layers, width, heads, feed_forward, head,
            head2;              // hidden widths of the classifier's head; head2 0: none
        int match;              // rfa_match_kind
        int64_t vocabulary;     // rows of the table of symbols; 0: the data set's
        int positions, pooling; // rfa_positions, rfa_pooling
        double dropout;         // after embedding, on both residuals and inside feed-forward
    } model;
    struct {
        int kind; // rfa_attention_kind
        bool causal;
        int direction;     // rfa_direction
        int64_t features;  // D, projections per head
        int map;           // 0: by kind, else rfa_map_kind + 1
        int norm;          // rfa_norm_kind
        int rows;          // 0: by kind, else rfa_rows_kind + 1
        int64_t pool;      // matrices in the pool of projections
        int64_t redraw;    // steps that take the same ones; 0: all
        int sigma;         // rfa_bandwidth_kind
        double bandwidth;  // initial sigma
        int gate;          // rfa_gate_kind
        double gate_bias;  // initial
        int64_t landmarks; // C
        int landmark_map;  // rfa_landmark_kind
        int64_t draws;
        bool antithetic;
        int weights; // rfa_weights_kind
        double specificity;
        int64_t window; // tokens
    } attention;
    struct {
        int64_t sequence; // ranks that share a sequence; 0: all
        int64_t segments; // G, a power of two
        int64_t threads;  // OpenMP threads per rank
        int exchange;     // rfa_exchange_algorithm, same order: auto, exscan, transposed
    } parallel;
    struct {
        int64_t seed, steps, batch,
            micro_batch; // micro_batch: examples per pass of one data group; 0: all
        int64_t window;  // tokens of a window; 0: no windows
        int carry;       // rfa_carry
        bool recompute;
        double rate;    // peak learning rate
        int64_t warmup; // steps of linear rise
        int schedule;   // rfa_schedule_kind
        bool cycle_beta1;
        double weight_decay, beta1, beta2, epsilon;
        double clip;                               // global L2 norm; 0: off
        int64_t evaluate_every, evaluate_examples; // 0 examples: the whole validation split
        int64_t patience;      // validations without a better one before the run ends; 0: off
        int test;              // 0: the last parameters, 1: the best of the validation split
        int64_t test_examples; // 0: the whole test split
        int64_t checkpoint_every;
        double checkpoint_minutes; // also after this many minutes; 0: off
        int64_t check_every;       // steps between comparisons of the parameters over ranks; 0: off
        double max_minutes;        // stop, resumable, before this; 0: off
    } train;
    struct { // of rfa bench: no part of a run, and not in its saved copy
        char cases[RFA_CONFIG_TEXT], attention[RFA_CONFIG_TEXT]; // lists of words
        char lengths[RFA_CONFIG_TEXT], sizes[RFA_CONFIG_TEXT],
            states[RFA_CONFIG_TEXT]; // of numbers
        int64_t repeats, examples, vocabulary, classes, ceiling;
    } bench;
    struct { // of rfa fidelity: likewise
        char file[RFA_CONFIG_TEXT], ensembles[RFA_CONFIG_TEXT], kinds[RFA_CONFIG_TEXT],
            norms[RFA_CONFIG_TEXT], features[RFA_CONFIG_TEXT];
        int64_t length, width, heads, trials;
        bool matrix;
        int spectrum; // rfa_spectrum_choice
        int64_t values, full, ceiling;
    } fidelity;
} rfa_config;

// The defaults of the table.
void rfa_config_defaults(rfa_config *config);

// Parses YAML text over *config; name is what errors call it. RFA_ERR_USAGE with
// "name:line: unknown key 'train.lerning_rate'; did you mean 'train.rate'?" for unknown, misplaced,
// doubled keys, wrong types (4x, 2.9 for an integer), values out of range, broken YAML. Local.
RFA_NODISCARD rfa_status rfa_config_parse(rfa_config *config, const char *text, const char *name);

// Reads and parses a file, whose first line may be "include: OTHER.yaml", a path from its own
// folder: keys of the including file replace those of the included one. RFA_ERR_IO when it can't be
// read, RFA_ERR_USAGE when it has no bytes. Local.
RFA_NODISCARD rfa_status rfa_config_load(rfa_config *config, const char *path);

// Applies "key=value" (--set). Same errors, with "--set key=value" as the place. Local.
RFA_NODISCARD rfa_status rfa_config_set(rfa_config *config, const char *assignment);

// What single keys can't know: heads divide width, first-token pooling with causal, segments a
// power of two and the like. RFA_ERR_USAGE naming both keys. Local.
RFA_NODISCARD rfa_status rfa_config_check(const rfa_config *config);

// What is allowed for training, but hardly meant, as warnings on stderr. Local.
void rfa_config_warn(const rfa_config *config);

// Canonical YAML: every key in table order. Owned by the caller (rfa_free). parse(text(c)) == c.
// Local.
RFA_NODISCARD rfa_status rfa_config_text(char **out, const rfa_config *config);

// Names the keys that change the mathematics (not threads, ranks, exchange, evaluation or
// checkpoint intervals) and differ between a and b, as "train.rate (0.001, was 0.002), ..." into
// text; returns how many.
int rfa_config_differences(char *text, int size, const rfa_config *a, const rfa_config *b);

// Every key with type, range, default and meaning, printed from the table.
void rfa_config_help(void (*print_line)(const char *line));

#endif
