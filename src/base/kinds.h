// Choices that a configuration names and several rooms act on.
#ifndef RFA_BASE_KINDS_H
#define RFA_BASE_KINDS_H

typedef enum { RFA_ATTENTION_RFA, RFA_ATTENTION_SOFTMAX } rfa_attention_kind;
typedef enum { RFA_POSITIONS_LEARNED, RFA_POSITIONS_SINUSOIDAL, RFA_POSITIONS_NONE } rfa_positions;
typedef enum { RFA_POOLING_MEAN, RFA_POOLING_FIRST } rfa_pooling;

// What a configuration may ask for at most, and tables by layer and head hold.
enum { RFA_MOST_LAYERS = 64, RFA_MOST_HEADS = 64 };

#endif
