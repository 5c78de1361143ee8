/* Growing arrays. */
#include "base/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Small arrays double; from this many bytes on they grow by an eighth, which realloc does
 * by remapping pages, so that a large array wastes little. */
#define DOUBLING_LIMIT_BYTES ((size_t)256 << 10)
#define SMALLEST_CAPACITY    8

/* The address of a typed pointer is read and written as bytes: a void ** would alias it. */
static void *pointer_at(const void *array_at)
{
    void *array;

    memcpy(&array, array_at, sizeof(array));
    return array;
}

/* At least count and at most count_max, where count_max elements have no overflowing size. */
static size_t next_capacity(size_t capacity, size_t count, size_t element_bytes, size_t count_max)
{
    size_t step = capacity < DOUBLING_LIMIT_BYTES / element_bytes ? capacity : capacity / 8;
    size_t next = capacity > count_max - step ? count_max : capacity + step;

    if (next < SMALLEST_CAPACITY)
        next = SMALLEST_CAPACITY < count_max ? SMALLEST_CAPACITY : count_max;
    return next > count ? next : count;
}

enum zt_status zt_array_reserve(void *array_at, size_t *capacity, size_t count,
                                size_t element_bytes, size_t count_max)
{
    size_t addressable;
    size_t wanted;
    void *array;

    assert(element_bytes > 0);
    if (count <= *capacity)
        return ZT_OK;
    addressable = PTRDIFF_MAX / element_bytes;
    if (count_max > addressable)
        count_max = addressable;
    if (count > count_max)
        return ZT_LIMIT;
    wanted = next_capacity(*capacity, count, element_bytes, count_max);
    assert(wanted >= count && wanted <= count_max);
    array = realloc(pointer_at(array_at), wanted * element_bytes);
    if (array == NULL)
        return ZT_NO_MEMORY;
    memcpy(array_at, &array, sizeof(array));
    *capacity = wanted;
    return ZT_OK;
}

void zt_array_trim(void *array_at, size_t *capacity, size_t count, size_t element_bytes)
{
    void *array = pointer_at(array_at);

    assert(element_bytes > 0 && count <= *capacity);
    if (count == 0) {
        free(array);
        array = NULL;
    } else if (count < *capacity) {
        void *smaller = realloc(array, count * element_bytes);

        if (smaller == NULL)
            return;
        array = smaller;
    }
    memcpy(array_at, &array, sizeof(array));
    *capacity = count;
}
