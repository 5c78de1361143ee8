/* Finds the keys of a page by binary search: common prefixes are stepped over, whatever is below
 * them. */
#include "s3/s3api_listing.h"

#include <assert.h>
#include <string.h>

#include "base/base64.h"

struct selection {
    const struct s3api_keys *keys;
    const struct s3api_page_query *query;
    struct s3api_page *page;
};

static struct zt_text key_at(const struct s3api_keys *keys, size_t index)
{
    assert(index < keys->count);
    return keys->key_at(keys->context, index);
}

/* Returns the index of the first key, from a given one on, that is greater than the text. equal:
 * also a key equal to it. */
static size_t find(const struct s3api_keys *keys, size_t low, struct zt_text text, bool equal)
{
    size_t high = keys->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = zt_text_compare(key_at(keys, middle), text);

        if (order < 0 || (order == 0 && !equal))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the index of the first key, from a given one on, that does not begin with the prefix.
 * That one begins with it. */
static size_t find_end(const struct s3api_keys *keys, size_t low, struct zt_text prefix)
{
    size_t high = keys->count;

    assert(zt_text_starts_with(key_at(keys, low), prefix));
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (zt_text_starts_with(key_at(keys, middle), prefix))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds the common prefix to which a key belongs. Returns false if the key is listed itself. */
static bool find_prefix(const struct s3api_page_query *query, struct zt_text key,
                        struct zt_text *out_prefix)
{
    const char *rest = key.bytes + query->prefix.length;
    const char *found;

    assert(key.length >= query->prefix.length);
    if (query->delimiter.length == 0)
        return false;
    found = memmem(rest, key.length - query->prefix.length, query->delimiter.bytes,
                   query->delimiter.length);
    if (found == NULL)
        return false;
    *out_prefix =
        (struct zt_text){key.bytes, (size_t)(found - key.bytes) + query->delimiter.length};
    return true;
}

/* Returns true if the client may see one of the keys from *at to end; *at is then the first. */
static bool finds_seen(const struct s3api_keys *keys, size_t *at, size_t end)
{
    while (*at < end && !keys->is_seen(keys->context, *at))
        *at += 1;
    return *at < end;
}

/* Adds an item. Returns false if the page is full. */
static bool add(const struct selection *selection, struct s3api_item item)
{
    struct s3api_page *page = selection->page;

    if (page->count == selection->query->limit) {
        page->is_truncated = page->count > 0;
        return false;
    }
    page->items[page->count++] = item;
    return true;
}

/* Adds the item of the key at *at, and moves *at past all of its keys. Returns false at the end. */
static bool step(const struct selection *selection, size_t *at)
{
    const struct s3api_keys *keys = selection->keys;
    const struct s3api_page_query *query = selection->query;
    struct s3api_item item = {.index = *at, .key = key_at(keys, *at)};

    if (!zt_text_starts_with(item.key, query->prefix))
        return false;
    item.is_prefix = find_prefix(query, item.key, &item.key);
    *at = item.is_prefix ? find_end(keys, *at, item.key) : *at + 1;
    assert(*at > item.index);
    if (item.is_prefix && zt_text_compare(item.key, query->after) <= 0)
        return true;
    return !finds_seen(keys, &item.index, *at) || add(selection, item);
}

void s3api_page_select(const struct s3api_keys *keys, const struct s3api_page_query *query,
                       struct s3api_page *out_page)
{
    const struct selection selection = {keys, query, out_page};
    size_t at = find(keys, 0, query->prefix, true);

    assert(query->limit <= S3API_PAGE_MAX);
    out_page->count = 0;
    out_page->is_truncated = false;
    if (query->after.length > 0)
        at = find(keys, at, query->after, false);
    while (at < keys->count && step(&selection, &at))
        continue;
}

/* --- continuation tokens --- */

void s3api_token_write(struct zt_text key, char *out_token)
{
    assert(key.length > 0);
    zt_base64_write(out_token, key.bytes, key.length, ZT_BASE64_URL);
}

bool s3api_token_read(struct zt_text token, char *out_key, size_t size, size_t *out_length)
{
    return token.length > 0 && zt_base64_read(token, ZT_BASE64_URL, out_key, size, out_length);
}
