#include "config/keys.h"

#include <string.h>

enum {
    LONGEST = 40, // characters of a name that is compared
    EDIT = 16,    // score of one edit
    ELSEWHERE = 8 // and of the right name in the wrong section
};

static int least(int a, int b)
{
    return a < b ? a : b;
}

// Insertions, deletions and substitutions that turn a into b.
static int edits(const char *a, const char *b)
{
    const int m = (int)strlen(a), n = (int)strlen(b);
    int rows[2][LONGEST + 1];
    if (m > LONGEST || n > LONGEST) {
        return 2 * LONGEST;
    }
    for (int j = 0; j <= n; j++) {
        rows[0][j] = j;
    }
    for (int i = 1; i <= m; i++) {
        int *row = rows[i % 2];
        const int *above = rows[(i + 1) % 2];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int substitution = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(substitution, 1 + least(above[j], row[j - 1]));
        }
    }
    return rows[m % 2][n];
}

// 0 for equal names. A name within the other (learning_rate, n_heads) is as near as one edit.
static int score(const char *typed, const char *known)
{
    const int distance = edits(typed, known);
    const bool within =
        (strlen(known) > 2 && strstr(typed, known)) || (strlen(typed) > 2 && strstr(known, typed));
    return within ? least(EDIT * distance, EDIT + distance) : EDIT * distance;
}

static void list_names(char *out, size_t size, const char *section)
{
    size_t used = 0;
    rfa_append(out, size, &used, section ? "; keys of %s:" : "; sections:", section);
    const char *before = "", *comma = " ";
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        const char *name = section ? key->name : key->section;
        if (section ? strcmp(key->section, section) == 0 : strcmp(name, before) != 0) {
            rfa_append(out, size, &used, "%s%s", comma, name);
            before = name;
            comma = ", ";
        }
    }
}

void rfa_key_hint(char *out, size_t size, const char *typed)
{
    char section[LONGEST + 1] = "";
    const char *dot = strchr(typed, '.'), *name = dot ? dot + 1 : typed;
    if (dot && dot - typed <= LONGEST) {
        memcpy(section, typed, (size_t)(dot - typed));
    } else if (!dot && rfa_key_is_section(typed)) {
        list_names(out, size, typed);
        return;
    }
    const rfa_key *best = NULL;
    int best_score = EDIT * least(LONGEST, 1 + (int)strlen(name) / 2);
    bool is_section = false;
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        const bool here = strcmp(section, key->section) == 0;
        const int key_score = score(name, key->name) + (here ? 0 : ELSEWHERE);
        if (key_score < best_score) {
            best_score = key_score;
            best = key;
            is_section = false;
        }
        if (!dot && score(name, key->section) < best_score) {
            best_score = score(name, key->section);
            best = key;
            is_section = true;
        }
    }
    size_t used = 0;
    if (!best) {
        list_names(out, size, rfa_key_is_section(section) ? section : NULL);
    } else if (is_section) {
        rfa_append(out, size, &used, "; did you mean '%s'?", best->section);
    } else {
        rfa_append(out, size, &used, "; did you mean '%s.%s'?", best->section, best->name);
    }
}
