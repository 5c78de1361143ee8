/* The Range field. The first byte chooses the length of the representation, the rest is the
 * field. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "http/fields/ranges.h"

static void check_set(const struct range_set *set, uint64_t length)
{
    FUZZ_ASSERT(set->count > 0 && set->count <= RANGES_MAX);
    for (unsigned i = 0; i < set->count; i++) {
        const struct byte_range *range = &set->ranges[i];

        FUZZ_ASSERT(range->length > 0 && range->first < length &&
                    range->length <= length - range->first);
        for (unsigned j = 0; j < i; j++) {
            const struct byte_range *before = &set->ranges[j];

            /* Neither overlapping nor adjacent. */
            FUZZ_ASSERT(range->first > before->first + before->length ||
                        before->first > range->first + range->length);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const uint64_t lengths[] = {0, 1, 10, 1000, UINT32_MAX, INT64_MAX, UINT64_MAX};
    struct range_set set = {.count = 0};
    char *field;
    uint64_t whole;
    enum ranges_outcome outcome;

    if (length == 0)
        return 0;
    field = fuzz_string(bytes + 1, length - 1);
    whole = lengths[bytes[0] % (sizeof(lengths) / sizeof(*lengths))];
    outcome = ranges_parse(field, whole, &set);
    if (outcome == RANGES_SATISFIABLE)
        check_set(&set, whole);
    else
        FUZZ_ASSERT(set.count == 0);
    free(field);
    return 0;
}
