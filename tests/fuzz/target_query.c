/* Queries: finding parameters and decoding them. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "http/fields/uri.h"

/* The value lies within the query; decoding never makes it longer, and fails only at a '%'. */
static void check_value(const char *target, struct zt_text raw)
{
    char *decoded = malloc(raw.length + 1);
    size_t length = 0;

    FUZZ_ASSERT(decoded != NULL);
    FUZZ_ASSERT(raw.bytes > strchr(target, '?'));
    FUZZ_ASSERT(raw.bytes + raw.length <= target + strlen(target));
    FUZZ_ASSERT(raw.length == 0 || memchr(raw.bytes, '&', raw.length) == NULL);
    if (percent_decode(raw, decoded, &length))
        FUZZ_ASSERT(length <= raw.length);
    else
        FUZZ_ASSERT(memchr(raw.bytes, '%', raw.length) != NULL);
    free(decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const char *const names[] = {"prefix", "match", "", "a"};
    char *target = fuzz_string(bytes, length);

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct zt_text raw;

        for (unsigned nth = 0; nth < 8 && query_find(target, names[i], nth, &raw); nth++)
            check_value(target, raw);
    }
    free(target);
    return 0;
}
