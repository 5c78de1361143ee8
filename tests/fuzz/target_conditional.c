/* Entity tags and dates of conditional requests; a date survives being written and read again. The
 * first byte chooses which field the rest is. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "http/fields/conditional.h"
#include "input/date.h"

static void check_date(const char *text)
{
    char formatted[30];
    time_t time;
    time_t again;

    if (!http_date_parse(text, &time))
        return;
    http_date_format(time, formatted);
    FUZZ_ASSERT(strlen(formatted) == 29);
    FUZZ_ASSERT(http_date_parse(formatted, &again) && again == time);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const char etag[] = "\"a\"";
    struct preconditions preconditions = {.if_match = NULL};
    const char **const fields[] = {&preconditions.if_match, &preconditions.if_none_match,
                                   &preconditions.if_modified_since,
                                   &preconditions.if_unmodified_since};
    char *field;

    if (length == 0)
        return 0;
    field = fuzz_string(bytes + 1, length - 1);
    *fields[bytes[0] % 4] = field;
    for (int read = 0; read < 2; read++) {
        enum precondition_outcome outcome =
            precondition_check(&preconditions, etag, 1000000000, read);

        FUZZ_ASSERT(outcome != PRECONDITION_NOT_MODIFIED || read);
        (void)precondition_check(&preconditions, NULL, 0, read);
    }
    /* A weak tag never satisfies If-Range. */
    if (if_range_holds(field, etag, 1000000000, 1000000002))
        FUZZ_ASSERT(field[0] != 'W' || field[1] != '/');
    check_date(field);
    free(field);
    return 0;
}
