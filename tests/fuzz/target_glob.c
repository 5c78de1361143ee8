/* Globs over names: the glob up to the first newline, the name after it. Short ones are matched again by a plain
 * recursion over their characters, which is slow and easy to see through. */
#include "fuzz.h"

#include <string.h>

#include "http/utf8.h"
#include "model/glob.h"

#define PLAIN_MAX 12

/* ASCII without classes. */
static bool is_plain(struct zt_text text)
{
    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)text.bytes[i] >= 0x80 || text.bytes[i] == '[')
            return false;
    }
    return text.length <= PLAIN_MAX;
}

static bool matches_plainly(const char *glob, const char *glob_end, const char *text, const char *text_end)
{
    if (glob == glob_end)
        return text == text_end;
    if (*glob == '*')
        return matches_plainly(glob + 1, glob_end, text, text_end) ||
               (text < text_end && matches_plainly(glob, glob_end, text + 1, text_end));
    return text < text_end && (*glob == '?' || *glob == *text) &&
           matches_plainly(glob + 1, glob_end, text + 1, text_end);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *all = (const char *)bytes;
    const char *newline = length > 0 ? memchr(all, '\n', length) : NULL;

    if (newline == NULL)
        return 0;
    struct zt_text glob = {all, (size_t)(newline - all)};
    struct zt_text text = {newline + 1, length - glob.length - 1};
    if (!glob_is_valid(glob) || !utf8_is_valid(text.bytes, text.length))
        return 0;
    FUZZ_ASSERT(glob.length <= GLOB_MAX);
    bool matched = glob_match(glob, text);
    if (is_plain(glob) && is_plain(text))
        FUZZ_ASSERT(matched ==
                    matches_plainly(glob.bytes, glob.bytes + glob.length, text.bytes, text.bytes + text.length));
    FUZZ_ASSERT(glob_match((struct zt_text){"*", 1}, text));
    return 0;
}
