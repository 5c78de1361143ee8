/* Globs over names: every line but the last is a glob, the last a name. The set must match what one
 * of its globs matches, by a matcher that is slow and easy to follow. */
#include "fuzz.h"

#include <string.h>

#include "base/glob.h"
#include "glob_oracle.h"

/* Reads a line and moves *at past its newline; false if there is none. */
static bool take_line(const char *text, size_t length, size_t *at, struct zt_text *out_line)
{
    const char *newline = *at < length ? memchr(text + *at, '\n', length - *at) : NULL;

    if (newline == NULL)
        return false;
    *out_line = (struct zt_text){text + *at, (size_t)(newline - text) - *at};
    *at += out_line->length + 1;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *all = (const char *)bytes;
    struct zt_text globs[GLOB_SET_MAX];
    struct zt_text line;
    size_t at = 0;
    size_t count = 0;
    size_t total = 0;
    bool expected = false;
    struct zt_text name;
    struct glob_set *set;

    for (; take_line(all, length, &at, &line) && count < GLOB_SET_MAX; total += line.length) {
        if (!glob_is_valid(line))
            return 0;
        FUZZ_ASSERT(line.length <= GLOB_MAX);
        globs[count++] = line;
    }
    if (total > GLOB_SET_BYTES_MAX || count == 0)
        return 0;
    name = (struct zt_text){all + at, length - at};
    set = glob_set_new(globs, count);
    FUZZ_ASSERT(set != NULL);
    for (size_t i = 0; i < count; i++)
        expected = expected || glob_oracle_matches(globs[i], name);
    FUZZ_ASSERT(glob_set_matches(set, name) == expected);
    glob_set_free(set);
    return 0;
}
