#include "cli/manual.h"
#include "config/config.h"

#include <stdio.h>
#include <string.h>

static bool is_example(const char *line)
{
    static const char *const programs[] = {"rfa ", "mpirun ", "srun ", "man ", "source "};
    line += strspn(line, " ");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strncmp(line, programs[i], strlen(programs[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

bool rfa_page_option(const char **text, char *name, char *value, size_t size)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.,_-+0123456789";
    const char *c = *text;
    name[0] = value[0] = '\0';
    while (*c) {
        const bool begins = c == *text || c[-1] == '\n';
        if (begins && is_example(c)) {
            c += strcspn(c, "\n");
        } else if (strncmp(c, "--", 2) == 0 && c[2] >= 'a' && c[2] <= 'z' &&
                   (begins || strchr(" [(,\n", c[-1]))) {
            c += 2;
            size_t n = 0;
            for (; is_letter(*c); c++) {
                n += n + 1 < size ? (size_t)(name[n] = *c, 1) : 0;
            }
            name[n] = '\0';
            // The word of a value stands one blank or '=' behind: "--out FILE", "--train=N".
            const bool has = (c[0] == '=' || c[0] == ' ') && c[1] != ' ';
            const size_t word = has ? strspn(c + 1, letters) : 0;
            const bool key = has && strncmp(c + 1, "key=value", 9) == 0;
            const bool split = strcmp(name, "split") == 0;
            if (word && (c[0] == '=' || key || split || (c[1] >= 'A' && c[1] <= 'Z'))) {
                snprintf(value, size, "%.*s", (int)word, c + 1);
            }
            *text = c;
            return true;
        } else {
            c++;
        }
    }
    *text = c;
    return false;
}

// A line as troff shows it: no line begins a request, and dashes stay dashes.
static void put_line(const char *line, size_t size)
{
    if (size > 0 && (line[0] == '.' || line[0] == '\'')) {
        printf("\\&");
    }
    for (size_t i = 0; i < size; i++) {
        switch (line[i]) {
        case '\\': printf("\\e"); break;
        case '-': printf("\\-"); break;
        case '\'': printf("\\(aq"); break;
        case '`': printf("\\(ga"); break;
        case '^': printf("\\(ha"); break;
        case '~': printf("\\(ti"); break;
        default: putchar(line[i]);
        }
    }
    printf("\n");
}

static void put_text(const char *text)
{
    printf(".nf\n");
    for (bool blank = true; *text;) {
        const size_t size = strcspn(text, "\n");
        if (size > 0) {
            put_line(text, size);
        } else if (!blank) {
            printf(".PP\n");
        }
        blank = size == 0;
        text += size + (text[size] == '\n');
    }
    printf(".fi\n");
}

static void put_config_line(const char *line)
{
    static bool blank;
    if (line[0]) {
        put_line(line, strlen(line));
    } else if (!blank) {
        printf(".PP\n");
    }
    blank = !line[0];
}

void rfa_print_manual(const rfa_pages *pages)
{
    printf(".TH RFA 1\n"
           ".SH NAME\n"
           "rfa \\- train transformers with random feature attention on many machines\n"
           ".SH SYNOPSIS\n"
           ".B rfa\n.I VERB\n[\n.I ARGUMENTS\n]\n.br\n"
           ".B mpirun \\-n\n.I RANKS\n.B rfa\n.I VERB\n[\n.I ARGUMENTS\n]\n"
           ".SH DESCRIPTION\n"
           "The result of a run does not depend on the number of ranks, to the bit.\n"
           ".SH VERBS\n");
    for (int i = 0; i < pages->count; i++) {
        const rfa_page *page = &pages->page[i];
        printf(".SS rfa %s%s%s\n", page->verb, page->task ? " " : "", page->task ? page->task : "");
        put_line(page->help, strlen(page->help));
        printf(".PP\n");
        put_text(page->text);
    }
    printf(".SH CONFIGURATION\n.nf\n");
    rfa_config_help(put_config_line);
    printf(".fi\n"
           ".SH EXIT STATUS\n"
           "0: done. 1: runs or results differ. 2: usage. 3: a file. Others are those of\n"
           "base/status.h; 85: stopped with a checkpoint, to be resumed.\n"
           ".SH ENVIRONMENT\n"
           ".TP\nRFA_END_TIME, SLURM_JOB_END_TIME\n"
           "Unix time before which training stops with a checkpoint.\n"
           ".TP\nOMP_NUM_THREADS\n"
           "Of no effect: the key parallel.threads counts.\n");
}
