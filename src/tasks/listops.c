#include "tasks/listops.h"

#include "base/mem.h"
#include "rng/rng.h"

#include <string.h>

enum { DEPTH_LIMIT = 64, ARGS_LIMIT = 256, LENGTH_LIMIT = 1 << 20, NESTING_LIMIT = 1000 };

const char *const rfa_listops_symbols[RFA_LISTOPS_VOCABULARY] = {
    "<pad>", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};

// An operator whose arguments are being collected.
typedef struct {
    int counts[10]; // how often each digit is an argument so far
    int arguments;  // so far
    int wanted;     // 0 when a bracket ends them
    ptrdiff_t place;
} frame;

rfa_listops_options rfa_listops_defaults(void)
{
    return (rfa_listops_options){.seed = 1,
                                 .min_length = 500,
                                 .max_length = 2000,
                                 .max_depth = 10,
                                 .max_args = 10,
                                 .p_op = 0.25};
}

rfa_status rfa_listops_check(const rfa_listops_options *options)
{
    const rfa_listops_options *o = options;
    if (o->max_depth < 2 || o->max_depth > DEPTH_LIMIT) {
        return rfa_fail(RFA_ERR_USAGE, "--max-depth is %d, not 2 to %d", o->max_depth, DEPTH_LIMIT);
    }
    if (o->max_args < 2 || o->max_args > ARGS_LIMIT) {
        return rfa_fail(RFA_ERR_USAGE, "--max-args is %d, not 2 to %d", o->max_args, ARGS_LIMIT);
    }
    if (!(o->p_op > 0 && o->p_op <= 1)) {
        return rfa_fail(RFA_ERR_USAGE, "--p-op is %g, not above 0 and at most 1", o->p_op);
    }
    if (o->max_length < 2 || o->max_length > LENGTH_LIMIT) {
        return rfa_fail(RFA_ERR_USAGE, "--max-length is %lld, not 2 to %d",
                        (long long)o->max_length, LENGTH_LIMIT);
    }
    if (o->min_length < 0 || o->min_length > o->max_length - 2) {
        return rfa_fail(RFA_ERR_USAGE,
                        "--min-length is %lld, but trees are kept strictly between it and "
                        "--max-length %lld",
                        (long long)o->min_length, (long long)o->max_length);
    }
    int64_t longest = 1;
    for (int depth = 2; depth <= o->max_depth && longest <= o->min_length; depth++) {
        longest = 2 + o->max_args * longest;
    }
    if (longest <= o->min_length) {
        return rfa_fail(RFA_ERR_USAGE,
                        "--max-depth %d and --max-args %d give at most %lld tokens, but "
                        "--min-length is %lld",
                        o->max_depth, o->max_args, (long long)longest, (long long)o->min_length);
    }
    return RFA_OK;
}

int rfa_listops_apply(int operator, const int counts[10])
{
    int number = 0, sum = 0, lowest = 9, highest = 0;
    for (int digit = 0; digit < 10; digit++) {
        if (counts[digit] > 0) {
            lowest = digit < lowest ? digit : lowest;
            highest = digit;
            number += counts[digit];
            sum = (sum + digit * (counts[digit] % 10)) % 10;
        }
    }
    RFA_ASSERT(number > 0);
    switch (operator) {
    case RFA_LISTOPS_MIN: return lowest;
    case RFA_LISTOPS_MAX: return highest;
    case RFA_LISTOPS_SM: return sum;
    default: break;
    }
    RFA_ASSERT(operator== RFA_LISTOPS_MED);
    // Middle values are number (number - 1) / 2 and number / 2 in ascending order, from 0.
    int middle[2] = {-1, -1}, below = 0;
    for (int digit = 0; digit < 10; digit++) {
        below += counts[digit];
        if (middle[0] < 0 && below > (number - 1) / 2) {
            middle[0] = digit;
        }
        if (middle[1] < 0 && below > number / 2) {
            middle[1] = digit;
        }
    }
    return (middle[0] + middle[1]) / 2;
}

ptrdiff_t
rfa_listops_tree(uint16_t *ids, int *label, const rfa_listops_options *options, uint64_t candidate)
{
    rfa_rng_reader random = rfa_rng_reader_at(rfa_rng_stream(
        options->seed, RFA_RNG_LISTOPS, (uint32_t)candidate, (uint32_t)(candidate >> 32)));
    frame stack[DEPTH_LIMIT];
    int open = 0; // operators above the node that comes next, which has depth open + 1
    ptrdiff_t at = 0;
    // What the tree has at least: every node that is still to come counts as one digit.
    int64_t length = 1;
    for (;;) {
        if (open + 1 < options->max_depth && rfa_rng_uniform(&random) <= options->p_op) {
            const int wanted = 2 + (int)rfa_rng_below(&random, (uint32_t)options->max_args - 1);
            length += 1 + wanted;
            if (length >= options->max_length) {
                return 0;
            }
            stack[open++] = (frame){.wanted = wanted, .place = at++};
            continue;
        }
        int value = (int)rfa_rng_below(&random, 10);
        if (open == 0 && length <= options->min_length) {
            return 0; // the root is a digit
        }
        ids[at++] = (uint16_t)(RFA_LISTOPS_DIGIT + value);
        // The value is an argument of the operator above, and may complete it, and so on upward.
        while (open > 0) {
            frame *top = &stack[open - 1];
            top->counts[value]++;
            if (++top->arguments < top->wanted) {
                break;
            }
            // The operator is drawn when its arguments are there.
            const int operator= RFA_LISTOPS_MIN +(int) rfa_rng_below(&random, 4);
            ids[top->place] = (uint16_t) operator;
            ids[at++] = RFA_LISTOPS_CLOSE;
            value = rfa_listops_apply(operator, top->counts);
            open--;
        }
        if (open == 0) {
            *label = value;
            return length > options->min_length ? at : 0;
        }
    }
}

static rfa_status evaluate(int *value, const uint16_t *ids, ptrdiff_t length, frame *stack)
{
    int open = 0;
    for (ptrdiff_t i = 0; i < length; i++) {
        const int id = ids[i];
        const long long place = i + 1;
        int now;
        if (i > 0 && open == 0) {
            return rfa_fail(RFA_ERR_IO, "token %lld follows the end of the expression", place);
        }
        if (id >= RFA_LISTOPS_MIN && id <= RFA_LISTOPS_SM) {
            if (open == NESTING_LIMIT) {
                return rfa_fail(RFA_ERR_IO, "token %lld: nested deeper than %d", place,
                                NESTING_LIMIT);
            }
            stack[open++] = (frame){.place = i};
            continue;
        }
        if (id == RFA_LISTOPS_CLOSE) {
            if (open == 0) {
                return rfa_fail(RFA_ERR_IO, "token %lld closes an operator that is not there",
                                place);
            }
            const frame *top = &stack[--open];
            if (top->arguments == 0) {
                return rfa_fail(RFA_ERR_IO, "token %lld: an operator without arguments", place);
            }
            now = rfa_listops_apply(ids[top->place], top->counts);
        } else if (id >= RFA_LISTOPS_DIGIT && id < RFA_LISTOPS_MIN) {
            now = id - RFA_LISTOPS_DIGIT;
        } else {
            return rfa_fail(RFA_ERR_IO, "token %lld: id %d is not a symbol", place, id);
        }
        if (open > 0) {
            stack[open - 1].counts[now]++;
            stack[open - 1].arguments++;
        }
        *value = now;
    }
    if (length == 0) {
        return rfa_fail(RFA_ERR_IO, "the expression is empty");
    }
    if (open > 0) {
        return rfa_fail(RFA_ERR_IO, "%d operator%s not closed: ']' is missing", open,
                        open == 1 ? " is" : "s are");
    }
    return RFA_OK;
}

rfa_status rfa_listops_evaluate(int *value, const uint16_t *ids, ptrdiff_t length)
{
    frame *stack = NULL;
    *value = 0;
    RFA_TRY(rfa_alloc(&stack, NESTING_LIMIT, sizeof *stack, "ListOps operators"));
    const rfa_status status = evaluate(value, ids, length, stack);
    rfa_free(stack);
    return status;
}

// The id of a symbol, 0 when there is none.
static int symbol_id(const char *text, size_t length)
{
    for (int id = 1; id < RFA_LISTOPS_VOCABULARY; id++) {
        if (strlen(rfa_listops_symbols[id]) == length &&
            memcmp(rfa_listops_symbols[id], text, length) == 0) {
            return id;
        }
    }
    // The released pipeline renames the bracket, since its tokenizer drops punctuation.
    return length == 1 && text[0] == 'X' ? RFA_LISTOPS_CLOSE : 0;
}

rfa_status
rfa_listops_encode(uint16_t *ids, ptrdiff_t *length, ptrdiff_t capacity, const char *text)
{
    ptrdiff_t n = 0;
    int64_t open = 0;
    *length = 0;
    for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        const size_t size = strcspn(at, " ");
        if (size == 1 && (*at == '(' || *at == ')')) {
            open += *at == '(' ? 1 : -1;
            if (open < 0) {
                return rfa_fail(RFA_ERR_IO, "')' without '(' after token %lld", (long long)n);
            }
        } else {
            const int id = symbol_id(at, size);
            if (id == 0) {
                return rfa_fail(RFA_ERR_IO, "unknown token '%.*s' after token %lld",
                                size < 40 ? (int)size : 40, at, (long long)n);
            }
            if (n == capacity) {
                return rfa_fail(RFA_ERR_IO, "more than %lld tokens", (long long)capacity);
            }
            ids[n++] = (uint16_t)id;
        }
        at += size;
    }
    if (open > 0) {
        return rfa_fail(RFA_ERR_IO, "%lld '(' without ')'", (long long)open);
    }
    *length = n;
    return RFA_OK;
}

void rfa_listops_decode(char *text, const uint16_t *ids, ptrdiff_t length)
{
    for (ptrdiff_t i = 0; i < length; i++) {
        RFA_ASSERT(ids[i] > 0 && ids[i] < RFA_LISTOPS_VOCABULARY);
        const char *symbol = rfa_listops_symbols[ids[i]];
        const size_t size = strlen(symbol);
        if (i > 0) {
            *text++ = ' ';
        }
        memcpy(text, symbol, size);
        text += size;
    }
    *text = 0;
}
