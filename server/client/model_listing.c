/* http://host/some/path/ may be a server below "/some/path", or the models of the server at
 * http://host whose names begin with "some/path/". The first is tried first. */
#include "client/model_listing.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/json_answer.h"
#include "http/fields/uri.h"
#include "input/json_read.h"

#define LISTING "/v1/models"
/* Bound for a server that never ends a listing: 20 million models. */
#define PAGES_MOST 20000

/* Where a listing is, both encoded. */
struct listing {
    struct zt_text base;
    struct zt_text prefix; /* of the names */
};

bool model_listing_is_meant(const char *url)
{
    const struct zt_text text = {url, strcspn(url, "?#")};

    if (!web_address_is_meant(url) || url[text.length] != '\0')
        return false;
    return strchr(strstr(url, "//") + 2, '/') == NULL || url[text.length - 1] == '/' ||
           zt_text_ends_with(text, zt_text_from(LISTING));
}

static enum zt_status place_page(const struct client_place *place, const struct listing *listing,
                                 const char *cursor, struct client_place *out_place,
                                 struct zt_error *error)
{
    char prefix[WEB_TARGET_SIZE];
    struct href href;
    enum zt_status status;
    size_t length;

    assert(listing->prefix.length < sizeof(prefix));
    if (!percent_decode(listing->prefix, prefix, &length))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "the URL has a malformed escape");
    href_init(&href);
    if (listing->base.length > 0) {
        char base[WEB_TARGET_SIZE];

        snprintf(base, sizeof(base), "%.*s", (int)listing->base.length, listing->base.bytes);
        href_plain(&href, base);
    }
    href_plain(&href, LISTING "?limit=1000&parts=false&prefix=");
    href_segment(&href, (struct zt_text){prefix, length});
    href_plain(&href, cursor != NULL ? "&cursor=" : "");
    href_segment(&href, zt_text_from(cursor != NULL ? cursor : ""));
    status = href.failed ? zt_fail_memory(error, "a URL")
                         : client_place_beside(place, href.text, out_place, error);
    href_free(&href);
    return status;
}

/* --- pages --- */

struct fetching {
    struct client *client;
    const struct client_place *place; /* of the URL */
    struct listing listing;
    bool (*visit)(void *context, const struct json_t *model);
    void *context;
};

static enum zt_status visit_models(const struct fetching *fetching, const struct json_t *page,
                                   struct zt_error *error)
{
    const struct json_t *models = json_member_list(page, "models");

    if (models == NULL)
        return zt_fail(error, ZT_INVALID, NULL, ZT_NO_OFFSET,
                       "the server's response is not a listing of models");
    for (size_t i = 0; i < json_list_length(models); i++) {
        const struct json_t *model = json_list_object(models, i);

        if (model != NULL && !fetching->visit(fetching->context, model))
            return zt_fail_memory(error, "a listing");
    }
    return ZT_OK;
}

/* Fetches a page; *page is the one before, which is freed, or NULL. */
static enum zt_status fetch_page(const struct fetching *fetching, struct json_t **page,
                                 struct zt_error *error)
{
    struct json_t *next_page = NULL;
    struct zt_text cursor = {NULL, 0};
    struct client_place place;
    enum zt_status status;

    (void)json_member_text(*page, "next", &cursor);
    status = place_page(fetching->place, &fetching->listing, cursor.bytes, &place, error);
    if (status == ZT_OK)
        status = json_answer_ask(fetching->client, &place, &next_page, NULL, error);
    json_object_free(*page);
    *page = next_page;
    return status;
}

static enum zt_status fetch_all(const struct fetching *fetching, struct zt_error *error)
{
    struct json_t *page = NULL;
    bool has_next = true;
    enum zt_status status = ZT_OK;

    for (unsigned pages = 0; status == ZT_OK && has_next; pages++) {
        struct zt_text cursor;

        status = pages < PAGES_MOST
                     ? fetch_page(fetching, &page, error)
                     : zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                               "the server's listing has more than %d pages", PAGES_MOST);
        if (status == ZT_OK)
            status = visit_models(fetching, page, error);
        has_next = json_member_text(page, "next", &cursor) == JSON_FOUND;
    }
    json_object_free(page);
    return status;
}

/* --- URLs --- */

/* Returns false if the path does not contain the listing's own. */
static bool read_api(struct zt_text path, struct listing *out_listing)
{
    const char *found = memmem(path.bytes, path.length, LISTING, strlen(LISTING));
    const char *after = found != NULL ? found + strlen(LISTING) : NULL;
    const char *end = path.bytes + path.length;

    if (found == NULL || (after < end && *after != '/'))
        return false;
    out_listing->base = (struct zt_text){path.bytes, (size_t)(found - path.bytes)};
    out_listing->prefix = after < end ? (struct zt_text){after + 1, (size_t)(end - after) - 1}
                                      : (struct zt_text){"", 0};
    return true;
}

/* Returns true if a server may have no listing there. */
static bool is_absent(enum zt_status status, const struct zt_error *error)
{
    return status == ZT_INVALID || (status == ZT_IO && error->os_error == ENOENT);
}

enum zt_status model_listing_fetch(struct client *client, const char *url,
                                   bool (*visit)(void *context, const struct json_t *model),
                                   void *context, struct zt_error *error)
{
    struct client_place place;
    struct fetching fetching = {
        .client = client, .place = &place, .visit = visit, .context = context};
    struct zt_text path;
    enum zt_status status = client_place_read(url, &place, error);

    if (status != ZT_OK)
        return status;
    path = web_address_path(&place.address);
    if (read_api(path, &fetching.listing))
        return fetch_all(&fetching, error);
    assert(path.length > 0 && path.bytes[0] == '/');
    fetching.listing.base = (struct zt_text){path.bytes, path.length - 1};
    status = fetch_all(&fetching, error);
    if (path.length == 1 || !is_absent(status, error))
        return status;
    fetching.listing.base.length = 0;
    fetching.listing.prefix = (struct zt_text){path.bytes + 1, path.length - 1};
    return fetch_all(&fetching, error);
}
