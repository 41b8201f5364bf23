// Choices that a configuration names and several rooms act on.
#ifndef RFA_BASE_KINDS_H
#define RFA_BASE_KINDS_H

typedef enum {
    RFA_ATTENTION_RFA,
    RFA_ATTENTION_SOFTMAX,
    RFA_ATTENTION_ELU,
    RFA_ATTENTION_PERFORMER,
    RFA_ATTENTION_RA,
    RFA_ATTENTION_LARA,
    RFA_ATTENTION_EVA
} rfa_attention_kind;
typedef enum { RFA_NORM_UNIT, RFA_NORM_FREE } rfa_norm_kind;
typedef enum { RFA_LANDMARKS_LEARNED, RFA_LANDMARKS_MEAN } rfa_landmark_kind;
typedef enum { RFA_FORWARD, RFA_REVERSE, RFA_BOTH } rfa_direction;
typedef enum { RFA_GATE_NONE, RFA_GATE_LEARNED, RFA_GATE_DECAY } rfa_gate_kind;
typedef enum {
    RFA_BANDWIDTH_LEARNED,
    RFA_BANDWIDTH_TEMPERATURE,
    RFA_BANDWIDTH_FIXED
} rfa_bandwidth_kind;
typedef enum { RFA_WEIGHTS_BALANCE, RFA_WEIGHTS_SPECIFIC, RFA_WEIGHTS_BIASED } rfa_weights_kind;
typedef enum {
    RFA_MAP_GAUSSIAN,
    RFA_MAP_ARCCOS,
    RFA_MAP_POSITIVE,
    RFA_MAP_OPRF,
    RFA_MAP_ELU
} rfa_map_kind;
typedef enum {
    RFA_ROWS_IID,
    RFA_ROWS_ORTHOGONAL,
    RFA_ROWS_SIMPLEX,
    RFA_ROWS_FASTFOOD
} rfa_rows_kind;
typedef enum { RFA_POSITIONS_LEARNED, RFA_POSITIONS_SINUSOIDAL, RFA_POSITIONS_NONE } rfa_positions;
typedef enum {
    RFA_POOLING_MEAN,
    RFA_POOLING_FIRST,
    RFA_POOLING_LAST,
    RFA_POOLING_PADDED_MEAN
} rfa_pooling;
typedef enum { RFA_MATCH_CONCAT, RFA_MATCH_NLI } rfa_match_kind;
typedef enum { RFA_CARRY_EXACT, RFA_CARRY_DETACH, RFA_CARRY_STATEFUL } rfa_carry; // between windows
typedef enum { RFA_SPECTRUM_NONE, RFA_SPECTRUM_EXACT, RFA_SPECTRUM_ALL } rfa_spectrum_choice;

typedef enum {
    RFA_SCHEDULE_LINEAR,
    RFA_SCHEDULE_RSQRT,
    RFA_SCHEDULE_COSINE,
    RFA_SCHEDULE_ONE_CYCLE
} rfa_schedule_kind;

// How a parameter tensor begins.
typedef enum {
    RFA_INIT_CONSTANT, // value
    RFA_INIT_NORMAL,   // N(0, value^2)
    RFA_INIT_UNIFORM,  // U(-value, value)
} rfa_init;

// What a configuration may ask for at most, and tables by layer and head hold.
enum { RFA_MOST_LAYERS = 64, RFA_MOST_HEADS = 64 };

#endif
