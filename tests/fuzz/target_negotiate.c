/* Accept-Encoding and Accept: one text for both. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/fields/negotiate.h"

#define NPY "application/x-npy"

static void check_codings(const char *field)
{
    static const enum coding codings[] = {CODING_ZSTD, CODING_GZIP, CODING_IDENTITY};
    enum coding best = negotiate_coding(field, codings, 3);
    bool any = false;

    for (unsigned i = 0; i < 3; i++) {
        enum coding alone = negotiate_coding(field, &codings[i], 1);

        FUZZ_ASSERT(alone == codings[i] || alone == CODING_NONE);
        any = any || alone != CODING_NONE;
        /* The choice among all is also accepted when offered alone. */
        FUZZ_ASSERT(best != codings[i] || alone == best);
        /* A coding that no item allows is never chosen. */
        FUZZ_ASSERT(alone == CODING_NONE || codings[i] == CODING_IDENTITY ||
                    strchr(field, '*') != NULL ||
                    strcasestr(field, coding_name(codings[i])) != NULL);
    }
    FUZZ_ASSERT(any == (best != CODING_NONE));
}

static void check_media_type(const char *field)
{
    unsigned named = negotiate_media_type(field, NPY, true);
    unsigned weight = negotiate_media_type(field, NPY, false);

    FUZZ_ASSERT(named <= 1000 && weight <= 1000);
    FUZZ_ASSERT(named == 0 || (weight == named && strcasestr(field, NPY) != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *field = malloc(length + 1);

    FUZZ_ASSERT(field != NULL);
    memcpy(field, bytes, length);
    field[length] = '\0';
    check_codings(field);
    check_media_type(field);
    free(field);
    return 0;
}
