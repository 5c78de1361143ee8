/* Request targets: their path, its segments, percent-encoding, and which route takes it. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "http/exchange/router.h"
#include "http/fields/uri.h"

/* Encoding a decoded name and decoding it again gives the same name. */
static void check_segment(struct zt_text raw)
{
    char *decoded = malloc(raw.length + 1);
    size_t length = 0;

    FUZZ_ASSERT(decoded != NULL);
    if (percent_decode(raw, decoded, &length)) {
        struct href href;
        size_t again = 0;
        char *twice;

        FUZZ_ASSERT(length <= raw.length);
        href_init(&href);
        href_segment(&href, (struct zt_text){decoded, length});
        twice = malloc(href.length + 1);
        FUZZ_ASSERT(!href.failed && twice != NULL);
        FUZZ_ASSERT(percent_decode((struct zt_text){href.text, href.length}, twice, &again));
        FUZZ_ASSERT(again == length && memcmp(twice, decoded, length) == 0);
        FUZZ_ASSERT(href.length == 0 || memchr(href.text, '/', href.length) == NULL);
        free(twice);
        href_free(&href);
    }
    free(decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *target = fuzz_string(bytes, length);
    struct zt_text path;

    if (target_path(target, &path) == TARGET_PATH) {
        FUZZ_ASSERT(path.length > 0 && path.bytes[0] == '/' &&
                    memchr(path.bytes, '?', path.length) == NULL);
        (void)path_has_empty_segment(path);
        (void)path_has_encoded_slash(path);
        for (size_t i = 0; i < route_count; i++) {
            struct zt_text names[REQUEST_NAMES] = {{NULL, 0}};

            if (!route_matches(routes[i].pattern, path, names))
                continue;
            for (unsigned j = 0; j < REQUEST_NAMES && names[j].bytes != NULL; j++) {
                FUZZ_ASSERT(names[j].length > 0 && names[j].bytes > path.bytes);
                FUZZ_ASSERT(names[j].bytes + names[j].length <= path.bytes + path.length);
                check_segment(names[j]);
            }
        }
        check_segment(path);
    }
    free(target);
    return 0;
}
