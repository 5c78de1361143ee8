/* Separates options from files, as POSIX does (Utility Syntax Guideline 10), but in any order. */
#include "commands/arguments.h"

#include <assert.h>
#include <string.h>

char *arguments_next(struct arguments *arguments, bool *out_is_option)
{
    assert(arguments->taken >= 0 && arguments->taken <= arguments->argc);
    while (arguments->taken + 1 < arguments->argc) {
        char *text = arguments->argv[++arguments->taken];

        if (!arguments->options_ended && strcmp(text, "--") == 0) {
            arguments->options_ended = true;
            continue;
        }
        *out_is_option = !arguments->options_ended && text[0] == '-' && text[1] != '\0';
        return text;
    }
    return NULL;
}
