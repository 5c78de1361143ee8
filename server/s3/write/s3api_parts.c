#include "s3/write/s3api_parts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void s3api_parts_free(struct s3api_parts *table)
{
    free(table->parts);
    *table = (struct s3api_parts){.count = 0};
}

size_t s3api_parts_seek(const struct s3api_parts *table, uint32_t number)
{
    size_t low = 0;
    size_t high = table->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (table->parts[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low == table->count || table->parts[low].number >= number);
    return low;
}

const struct s3api_part *s3api_parts_find(const struct s3api_parts *table, uint32_t number)
{
    const size_t at = s3api_parts_seek(table, number);

    return at < table->count && table->parts[at].number == number ? &table->parts[at] : NULL;
}

bool s3api_parts_reserve(struct s3api_parts *table, size_t more)
{
    const size_t needed = table->count + more;
    size_t capacity = table->capacity > 0 ? table->capacity : 16;
    struct s3api_part *parts;

    if (needed <= table->capacity)
        return true;
    while (capacity < needed)
        capacity *= 2;
    parts = realloc(table->parts, capacity * sizeof(parts[0]));
    if (parts == NULL)
        return false;
    table->parts = parts;
    table->capacity = capacity;
    return true;
}

void s3api_parts_put(struct s3api_parts *table, const struct s3api_part *part)
{
    const size_t at = s3api_parts_seek(table, part->number);

    assert(part->number >= 1 && part->number <= S3API_PARTS_MAX);
    if (at < table->count && table->parts[at].number == part->number) {
        table->bytes -= table->parts[at].length;
    } else {
        assert(table->count < table->capacity);
        memmove(&table->parts[at + 1], &table->parts[at],
                (table->count - at) * sizeof(table->parts[0]));
        table->count++;
    }
    table->parts[at] = *part;
    table->bytes += part->length;
}

/* --- tags --- */

void s3api_part_etag(const struct s3api_part *part, char out_etag[S3API_PART_ETAG_SIZE])
{
    snprintf(out_etag, S3API_PART_ETAG_SIZE, "\"%016llx%016llx-1\"", (unsigned long long)part->xxh3,
             (unsigned long long)part->length);
}

/* Some proxies make a tag weak. */
bool s3api_part_has_etag(const struct s3api_part *part, struct zt_text etag)
{
    char own[S3API_PART_ETAG_SIZE];
    size_t length;

    s3api_part_etag(part, own);
    length = strlen(own);
    if (zt_text_starts_with(etag, zt_text_from("W/")))
        etag = (struct zt_text){etag.bytes + 2, etag.length - 2};
    return zt_text_is(etag, own) || zt_text_equal(etag, (struct zt_text){own + 1, length - 2});
}

/* --- joining --- */

/* Returns true if a part that is not listed is in the final file, which joining may overwrite or
 * cut. */
static bool would_lose(const struct s3api_parts *table, const struct s3api_part *list, size_t count)
{
    size_t in_place = 0;
    size_t listed = 0;

    for (size_t i = 0; i < table->count; i++)
        in_place += table->parts[i].version == 0;
    for (size_t i = 0; i < count; i++)
        listed += list[i].version == 0;
    assert(listed <= in_place);
    return listed < in_place;
}

enum s3api_join s3api_parts_plan(const struct s3api_parts *table, const struct s3api_part *list,
                                 size_t count)
{
    uint64_t offset = 0;
    size_t in_place = 0;

    if (would_lose(table, list, count))
        return S3API_JOIN_COPY;
    for (size_t i = 0; i < count; i++) {
        if (list[i].version == 0 && list[i].offset != offset)
            return S3API_JOIN_COPY;
        in_place += list[i].version == 0;
        offset += list[i].length;
    }
    return in_place > 0 ? S3API_JOIN_IN_PLACE : S3API_JOIN_COPY;
}
