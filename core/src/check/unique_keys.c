/* Telling whether words differ: a sort in place whose depth is bounded by their 64 bits, whatever
 * the input. */
#include "check/content.h"

/* Below this an insertion sort is quicker than another pass. */
#define SMALL 24

static bool is_ascending(const uint64_t *keys, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (keys[i - 1] >= keys[i])
            return false;
    return true;
}

static void insert_sort(uint64_t *keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        size_t at = i;

        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Moves the keys without the bit before those with it; gives how many lack it. */
static size_t partition(uint64_t *keys, size_t count, uint64_t bit)
{
    size_t low = 0, high = count;

    while (low < high) {
        if (keys[low] & bit) {
            uint64_t key = keys[low];

            keys[low] = keys[--high];
            keys[high] = key;
        } else {
            low++;
        }
    }
    return low;
}

static void sort_by_bits(uint64_t *keys, size_t count, uint64_t bit)
{
    while (bit != 0 && count > SMALL) {
        size_t low = partition(keys, count, bit);

        bit >>= 1;
        sort_by_bits(keys, low, bit);
        keys += low;
        count -= low;
    }
    if (bit != 0)
        insert_sort(keys, count);
}

bool zt_keys_unique(uint64_t *keys, size_t count)
{
    if (is_ascending(keys, count))
        return true;
    sort_by_bits(keys, count, (uint64_t)1 << 63);
    return is_ascending(keys, count);
}
