#include "s3/write/s3api_placement.h"

#include <assert.h>

static uint64_t longer(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Only the last part may be shorter than the others, so of two parts the longer one has the unit's
 * length; and part 1 has it unless it is the only one. */
static void learn(struct s3api_placement *placement, uint32_t number, uint64_t length)
{
    const bool has_other = placement->witness != 0 && placement->witness != number;

    if (placement->unit != 0)
        return;
    if (has_other || number == 1) {
        placement->unit = has_other ? longer(placement->witness_length, length) : length;
        return;
    }
    placement->witness = number;
    placement->witness_length = length;
}

bool s3api_placement_find(struct s3api_placement *placement, uint32_t number, uint64_t length,
                          uint64_t *out_offset)
{
    assert(number >= 1 && number <= S3API_PARTS_MAX);
    if (length == 0 || length > INT64_MAX / S3API_PARTS_MAX)
        return false;
    learn(placement, number, length);
    if (placement->unit == 0 || length > placement->unit)
        return false;
    assert(placement->unit <= INT64_MAX / S3API_PARTS_MAX);
    *out_offset = (number - 1) * placement->unit;
    return true;
}
