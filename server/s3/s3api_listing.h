/* Selects one page of keys, and of the common prefixes of keys, from a sorted list, as pure
 * functions (the rules of ListObjects).
 *
 * A page has the keys that begin with the prefix. Keys that have the delimiter after the prefix are
 * not in it; the text up to and including the delimiter, their common prefix, is there once. Keys
 * and common prefixes are in one order, bytewise, and both count. The page begins after a text:
 * everything up to and including it is passed over, so it need not exist any more. */
#ifndef S3_S3API_LISTING_H
#define S3_S3API_LISTING_H

#include <stdbool.h>
#include <stddef.h>

#include "zt/text.h"

/* Maximum number of items of a page. */
#define S3API_PAGE_MAX 1000

/* Keys in bytewise order. Lists of uploads have some of them several times. */
struct s3api_keys {
    size_t count;
    struct zt_text (*key_at)(void *context, size_t index);
    /* Returns false for a key that the client may not see. Called only where the answer matters,
     * because it may take long. */
    bool (*is_seen)(void *context, size_t index);
    void *context;
};

struct s3api_page_query {
    struct zt_text prefix;
    struct zt_text delimiter; /* empty: none */
    struct zt_text after;     /* empty: from the start */
    size_t limit;             /* at most S3API_PAGE_MAX */
};

struct s3api_item {
    size_t index;       /* of the key, or of a key with the common prefix */
    struct zt_text key; /* the key, or the common prefix; borrowed from the list */
    bool is_prefix;
};

struct s3api_page {
    size_t count;
    /* More keys follow: the next page begins after the last item. False for a limit of 0. */
    bool is_truncated;
    struct s3api_item items[S3API_PAGE_MAX];
};

/* Takes time proportional to the items and logarithmic in the number of keys, as long as the client
 * may see the keys. */
void s3api_page_select(const struct s3api_keys *keys, const struct s3api_page_query *query,
                       struct s3api_page *out_page);

/* --- continuation tokens --- */

/* Room for the token of a key of this length, and NUL. */
#define S3API_TOKEN_SIZE(length) (((length) + 2) / 3 * 4 + 1)

/* Writes the token that continues after a key: opaque, of characters that need no escape. */
void s3api_token_write(struct zt_text key, char *out_token);

/* Reads a token into a text of at most size bytes. Returns false if it is not one. */
bool s3api_token_read(struct zt_text token, char *out_key, size_t size, size_t *out_length);

#endif
