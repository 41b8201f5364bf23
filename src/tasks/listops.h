// ListOps of the Long Range Arena: prefix expressions over digits, whose value is the class.
// Nangia and Bowman, "ListOps: a diagnostic dataset for latent tree learning", 2018; Tay et al.,
// "Long Range Arena", 2021, for lengths, arguments and depth.
#ifndef RFA_TASKS_LISTOPS_H
#define RFA_TASKS_LISTOPS_H

#include "base/status.h"

#include <stdint.h>

// Token ids: digit d is 1 + d. The order is fixed, and stored with every data set.
enum {
    RFA_LISTOPS_PAD = 0,
    RFA_LISTOPS_DIGIT = 1,
    RFA_LISTOPS_MIN = 11,
    RFA_LISTOPS_MAX = 12,
    RFA_LISTOPS_MED = 13,
    RFA_LISTOPS_SM = 14,
    RFA_LISTOPS_CLOSE = 15,
    RFA_LISTOPS_VOCABULARY = 16,
    RFA_LISTOPS_CLASSES = 10,
};
extern const char *const rfa_listops_symbols[RFA_LISTOPS_VOCABULARY];

typedef struct {
    uint64_t seed;
    int64_t min_length, max_length; // tokens; a tree is kept strictly between
    int max_depth;                  // of nodes, the root has 1; the last level holds digits only
    int max_args;                   // an operator has 2 to this many arguments, all equally likely
    double p_op;                    // probability that a node above the last level is an operator
} rfa_listops_options;

rfa_listops_options rfa_listops_defaults(void); // those of the Long Range Arena, seed 1

// RFA_ERR_USAGE names the option out of range, or says that no tree can be long enough. Local.
RFA_NODISCARD rfa_status rfa_listops_check(const rfa_listops_options *options);

// Candidate tree number `candidate`, a function of it and the options alone: returns its length and
// fills ids [max_length] and label when it is kept, otherwise returns 0. Trees are left as soon as
// they are bound to be too long. About 10 ns a token. Local.
ptrdiff_t
rfa_listops_tree(uint16_t *ids, int *label, const rfa_listops_options *options, uint64_t candidate);

// Value of an operator (RFA_LISTOPS_MIN ... SM) on arguments given by how often each digit occurs:
// SM is the sum modulo 10, MED the median, for an even number of arguments the mean of the two
// middle values rounded down. At least one argument. Local.
int rfa_listops_apply(int operator, const int counts[10]);

// Value of a whole expression. RFA_ERR_IO, with the token's position (from 1), for brackets that
// don't balance, operators without arguments, anything after the end, and nesting beyond 1000.
RFA_NODISCARD rfa_status rfa_listops_evaluate(int *value, const uint16_t *ids, ptrdiff_t length);

// Text to ids [capacity]: symbols between spaces; "(" and ")" are checked for balance and dropped,
// "X" closes like "]". RFA_ERR_IO names an unknown symbol. Local.
RFA_NODISCARD rfa_status rfa_listops_encode(uint16_t *ids,
                                            ptrdiff_t *length,
                                            ptrdiff_t capacity,
                                            const char *text);

// Ids to text without parentheses, symbols between single spaces; text holds 5 * length + 1 bytes.
void rfa_listops_decode(char *text, const uint16_t *ids, ptrdiff_t length);

#endif
