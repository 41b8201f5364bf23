#include "tasks/token_ids.h"

rfa_status rfa_token_ids(uint16_t *ids,
                         ptrdiff_t *count,
                         ptrdiff_t most,
                         int *highest,
                         const char *text,
                         int64_t size,
                         int limit)
{
    *count = 0;
    for (int64_t i = 0; i < size && *count < most;) {
        const int64_t begin = i;
        int number = 0;
        for (; i < size && text[i] != ' '; i++) {
            const int digit = text[i] - '0';
            number = digit >= 0 && digit <= 9 && number >= 0 && number < limit ? 10 * number + digit
                                                                               : -1;
        }
        if (i == begin) { // a further space
            i++;
            continue;
        }
        if (number < 1 || number >= limit) {
            const int shown = (int)(i - begin < 24 ? i - begin : 24);
            return rfa_fail(RFA_ERR_IO, "token %lld is '%.*s', not an id from 1 to %d",
                            (long long)*count + 1, shown, text + begin, limit - 1);
        }
        *highest = number > *highest ? number : *highest;
        if (ids) {
            ids[*count] = (uint16_t)number;
        }
        ++*count;
    }
    return RFA_OK;
}
