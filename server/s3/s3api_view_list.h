/* A sorted list of keys with the views of its models, as far as one page needs them: the models of
 * other pages are not opened. */
#ifndef S3_S3API_VIEW_LIST_H
#define S3_S3API_VIEW_LIST_H

#include "s3/s3api_key_list.h"
#include "s3/s3api_listing.h"
#include "s3/s3api_view.h"

struct s3api_view_key {
    char *text;
    size_t length;
    size_t before; /* number of stored keys before it */
    struct model_view *view;
    uint32_t part;
};

/* Stored keys and views in one order. */
struct s3api_view_list {
    const struct s3api_key_list *keys;
    struct s3api_view_key *views; /* bytewise by text */
    size_t count;
    size_t capacity;
};

/* Adds the views that belong on a page. page is the page of the stored keys alone; keys->is_seen
 * tells which models the client may see. *out_views is freed with s3api_view_list_free. Returns
 * ZT_OK or ZT_NO_MEMORY. On a worker; may open models. */
enum zt_status s3api_view_list_make(struct server *server, const struct s3api_key_list *stored,
                                    const struct s3api_keys *keys,
                                    const struct s3api_page_query *query,
                                    const struct s3api_page *page,
                                    struct s3api_view_list *out_views);
void s3api_view_list_free(struct s3api_view_list *views);

/* Returns the number of keys and views together. */
size_t s3api_view_list_count(const struct s3api_view_list *views);

/* Finds what has an index in the common order: a view, or, if it returns NULL, the stored key
 * *out_stored. */
const struct s3api_view_key *s3api_view_list_at(const struct s3api_view_list *views, size_t index,
                                                size_t *out_stored);

#endif
