#include "tasks/listops_facts.h"

#include "tasks/listops.h"

rfa_listops_facts rfa_listops_look(const uint16_t *ids, ptrdiff_t length)
{
    rfa_listops_facts facts = {.root = ids[0], .by_rule = -1};
    int depth = 0, parts = 0, digits = 0, counts[10] = {0};
    for (ptrdiff_t t = 0; t < length; t++) {
        if (ids[t] >= RFA_LISTOPS_MIN && ids[t] <= RFA_LISTOPS_SM) {
            depth++;
            parts += depth == 2;
            facts.depth = depth > facts.depth ? depth : facts.depth;
        } else if (ids[t] == RFA_LISTOPS_CLOSE) {
            depth--;
        } else if (depth == 1) {
            counts[ids[t] - RFA_LISTOPS_DIGIT]++;
            digits++;
        }
    }
    if (facts.depth == 0) {
        facts.by_rule = facts.root - RFA_LISTOPS_DIGIT;
    } else if (digits > 0 && !(facts.root == RFA_LISTOPS_SM && parts > 0)) {
        facts.by_rule = rfa_listops_apply(facts.root, counts);
    }
    return facts;
}
