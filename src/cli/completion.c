#include "cli/manual.h"
#include "config/config.h"

#include <stdio.h>
#include <string.h>

enum { WORD = 64 };

// Names of sections and keys of the configuration from lines of its help: "section:", "  key: ".
static void put_key(const char *line)
{
    static char section[WORD];
    const size_t indent = strspn(line, " "), size = strcspn(line + indent, ":");
    if (line[indent] == '#' || line[indent + size] != ':') {
        return;
    }
    if (indent == 0) {
        snprintf(section, sizeof section, "%.*s", (int)size, line);
    } else {
        printf(" %s.%.*s=", section, (int)size, line + indent);
    }
}

// " --out --set" of a page, each once; has: only those with a value (1), a value that is a file
// (2).
static void put_options(const rfa_page *page, int has)
{
    char name[WORD], value[WORD], done[2048] = " ";
    for (const char *text = page->text; rfa_page_option(&text, name, value, WORD);) {
        char word[WORD + 4];
        snprintf(word, sizeof word, " --%s ", name);
        const bool file = strstr(value, "FILE") || strstr(value, "DIR") || strstr(value, "PATH") ||
                          strstr(value, ".h5");
        if (strstr(done, word) || (has == 1 && !value[0]) || (has == 2 && !file)) {
            continue;
        }
        strncat(done, word + 1, sizeof done - strlen(done) - 1);
        printf(" --%s", name);
    }
}

static void put_cases(const rfa_pages *pages, const char *variable, int has)
{
    printf("    case \"$verb\" in\n");
    for (int i = 0; i < pages->count; i++) {
        const rfa_page *page = &pages->page[i];
        printf("    '%s%s%s') %s='", page->verb, page->task ? " " : "",
               page->task ? page->task : "", variable);
        put_options(page, has);
        printf(" ' ;;\n");
    }
    printf("    esac\n");
}

void rfa_print_completion(const rfa_pages *pages)
{
    printf("# Completion of rfa for bash; made by rfa help --bash.\n"
           "_rfa()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local verb=${COMP_WORDS[1]} options= valued= files=\n"
           "    local verbs='");
    for (int i = 0; i < pages->count; i++) {
        printf("%s%s", pages->page[i].task ? "" : " ",
               pages->page[i].task ? "" : pages->page[i].verb);
    }
    printf("' tasks='");
    for (int i = 0; i < pages->count; i++) {
        printf("%s%s", pages->page[i].task ? " " : "",
               pages->page[i].task ? pages->page[i].task : "");
    }
    printf("'\n    local keys='");
    rfa_config_help(put_key);
    printf("'\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"$verbs --help\" -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    if [ \"$verb\" = help ] && [ \"${word#-}\" = \"$word\" ]; then\n"
           "        if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
           "            COMPREPLY=($(compgen -W \"$verbs\" -- \"$word\"))\n"
           "        elif [ \"$before\" = data ]; then\n"
           "            COMPREPLY=($(compgen -W \"$tasks\" -- \"$word\"))\n"
           "        fi\n"
           "        return\n"
           "    fi\n"
           "    if [ \"$verb\" = data ]; then\n"
           "        if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
           "            COMPREPLY=($(compgen -W \"$tasks --help\" -- \"$word\"))\n"
           "            return\n"
           "        fi\n"
           "        verb=\"data ${COMP_WORDS[2]}\"\n"
           "    fi\n");
    put_cases(pages, "options", 0);
    put_cases(pages, "valued", 1);
    put_cases(pages, "files", 2);
    printf("    if [ \"$before\" = --set ]; then\n"
           "        COMPREPLY=($(compgen -W \"$keys\" -- \"$word\"))\n"
           "        compopt -o nospace 2>/dev/null\n"
           "    elif [ \"$before\" = --split ]; then\n"
           "        COMPREPLY=($(compgen -W 'train val test' -- \"$word\"))\n"
           "    elif [[ \"$files\" == *\" $before \"* ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
           "        compopt -o filenames 2>/dev/null\n"
           "    elif [[ \"$valued\" == *\" $before \"* ]]; then\n"
           "        return\n"
           "    elif [[ \"$word\" == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$options --help\" -- \"$word\"))\n"
           "    else\n"
           "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
           "        compopt -o filenames 2>/dev/null\n"
           "    fi\n"
           "}\n"
           "complete -F _rfa rfa\n");
}
