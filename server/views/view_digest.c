/* Hashes the bytes that an export makes. */
#include "views/view_digest.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/export_reply.h"
#include "catalog/catalog.h"
#include "derived/export_source.h"

void view_text(const struct model_view *view, uint32_t part, const char *source,
               char out_text[VIEW_TEXT_SIZE])
{
    char what[64];

    assert(part == VIEW_INDEX || part < view->part_count);
    if (part == VIEW_INDEX)
        snprintf(what, sizeof(what), "index of %" PRIu32, view->part_count);
    else
        snprintf(what, sizeof(what), "%" PRIu32 "+%" PRIu32, view->parts[part].first,
                 view->parts[part].count);
    snprintf(out_text, VIEW_TEXT_SIZE, "view %d.%d of %s, %016" PRIx64 ": %s", MODEL_VIEW_REVISION,
             EXPORT_REVISION, source, view->manifest_hash, what);
}

static void hold_view(void *thing)
{
    model_view_hold(thing);
}

static void release_view(void *thing)
{
    model_view_release(thing);
}

static enum zt_status open_part(const struct hash_made *made, struct server *server,
                                struct zt_source **out_source, struct zt_error *error)
{
    const struct model_view *view = made->thing;
    const struct export_query query = model_view_query(view, made->part);
    struct generation *generation = catalog_update(server->catalog, view->path);
    enum zt_status status;

    assert(made->part < view->part_count);
    if (generation == NULL || !model_view_is_from(view, generation))
        status = zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "the model has been replaced");
    else
        status = export_source_open(server, generation, &query, out_source, error);
    generation_release(generation);
    return status;
}

/* Remote models are only hashed if that fetches few bytes, and mirrored ones once they are
 * verified. */
static bool may_hash(const struct server *server, const struct model_view *view,
                     uint64_t size_bytes)
{
    return (store_has_locally(server->store, zt_text_from(view->path)) ||
            size_bytes <= HASH_FETCHED_MAX) &&
           !store_is_unverified(server->store, view->path, &view->identity);
}

bool view_digest_find(struct server *server, struct model_view *view, uint32_t part, bool is_wanted,
                      uint8_t out_sha256[SHA256_BYTES])
{
    static const struct hash_made_ops ops = {hold_view, release_view, open_part,
                                             export_source_is_still};
    const struct hash_made made = {&ops, view, part};
    struct file_identity identity = view->identity;
    char name[MODEL_PATH_SIZE + VIEW_TEXT_SIZE];
    char text[VIEW_TEXT_SIZE];
    bool is_known;

    if (part == VIEW_INDEX) {
        memcpy(out_sha256, view->index_sha256, SHA256_BYTES);
        return true;
    }
    assert(part < view->part_count);
    identity.size_bytes = view->parts[part].length;
    view_text(view, part, "it", text);
    /* No stored file can have this path, because the model is a file and not a folder. */
    snprintf(name, sizeof(name), "%s/%s", view->path, text);
    is_known = file_hashes_find(server->hashes, name, &identity, out_sha256);
    if (!is_known && is_wanted && may_hash(server, view, identity.size_bytes))
        file_hashes_want_made(server->hashes, name, &identity, &made);
    return is_known;
}
