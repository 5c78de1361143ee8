/* Blobs: stored bytes without decoding.
 *
 * A blob is addressed by its SHA-256, so the response never changes. Any component with that digest
 * can provide it; if one turns out to be corrupt, the next is tried. */
#include "api/handlers.h"

#include <assert.h>
#include <string.h>

#include "api/resolve.h"
#include "base/hex.h"
#include "catalog/catalog.h"
#include "http/exchange/authorize.h"
#include "http/exchange/problem.h"
#include "verify/blob_index.h"
#include "verify/component_digests.h"
#include "verify/verifier.h"
#include "zt/shards.h"

struct blob {
    uint8_t sha256[SHA256_BYTES];
    unsigned skip;  /* candidates that cannot be served although their state does not show it */
    bool searching; /* on a worker */
    enum blob_answer answer;
    struct component_place place; /* generation: held, or NULL */
};

/* --- finding a component --- */

static void drop_place(struct blob *blob)
{
    generation_release(blob->place.generation);
    blob->place.generation = NULL;
}

static void release_blob(void *thing)
{
    drop_place(thing);
}

static void search_on_worker(struct request *request)
{
    struct blob *blob = request->context;

    blob->answer =
        blob_find(request->server, blob->sha256,
                  (struct blob_search){blob->skip, true, authorize_filter(request)}, &blob->place);
}

/* Finds the next candidate that is not known to be corrupt, and holds it in blob->place. Its file
 * may have changed since. */
static enum outcome search(struct request *request)
{
    struct blob *blob = request->context;

    if (blob->searching) {
        blob->searching = false;
        return OUTCOME_READY;
    }
    blob->answer =
        blob_find(request->server, blob->sha256,
                  (struct blob_search){blob->skip, false, authorize_filter(request)}, &blob->place);
    if (blob->answer != BLOB_BUSY)
        return OUTCOME_READY;
    blob->searching = true;
    return request_work_long(request, search_on_worker);
}

/* Returns true if the catalog still has the candidate at its path, with its file open. */
static bool is_current(struct request *request, enum outcome *out_outcome)
{
    struct blob *blob = request->context;
    const char *path;
    struct generation *now;
    enum catalog_answer answer;
    bool same;

    assert(blob->place.generation != NULL);
    path = blob->place.generation->path;
    now = NULL;
    answer = catalog_find_path(request->server->catalog, (struct zt_text){path, strlen(path)},
                               request_waiter(request), &now);
    same = answer == CATALOG_FOUND && now == blob->place.generation;
    if (answer == CATALOG_FOUND)
        generation_release(now);
    *out_outcome = answer == CATALOG_PENDING ? OUTCOME_WAITING : OUTCOME_READY;
    return same;
}

static enum outcome reply_not_found(struct request *request)
{
    struct blob *blob = request->context;

    if (blob->answer == BLOB_CORRUPT) {
        return problem_reply(
            request, PROBLEM_CORRUPT_COMPONENT,
            "the stored components that state this digest do not match it; they are not served");
    }
    return problem_reply(request, PROBLEM_NOT_FOUND,
                         "no stored component is known to have this digest");
}

/* Returns READY with blob->place current and held, or after replying. */
static enum outcome choose(struct request *request)
{
    struct blob *blob = request->context;

    for (;;) {
        enum outcome outcome;
        bool retired;

        if (blob->place.generation == NULL || blob->searching) {
            if (search(request) == OUTCOME_WAITING)
                return OUTCOME_WAITING;
            if (blob->answer != BLOB_FOUND)
                return reply_not_found(request);
        }
        if (is_current(request, &outcome))
            return OUTCOME_READY;
        /* The file was replaced, or is being opened again. A repeated search skips retired
         * generations. */
        retired = atomic_load(&blob->place.generation->retired);
        drop_place(blob);
        if (outcome == OUTCOME_WAITING)
            return OUTCOME_WAITING;
        blob->skip += !retired;
    }
}

/* --- the reply --- */

static void set_segments(struct request *request, const struct component_place *place)
{
    const struct zt_component *component;
    struct zt_files files;

    assert(place->generation != NULL);
    component = &place->generation->model->components[place->component];
    files = generation_files(place->generation);
    representation_clear(&request->reply);
    representation_source(&request->reply, zt_files_source(&files, component), component->offset,
                          component->length);
}

/* Verifies the candidate or, if that fails, the next one, even with verify: off, because caches
 * keep the response as immutable. The ETag is the digest, so it is correct for any candidate. */
static enum outcome step_verify(struct request *request)
{
    struct blob *blob = request->context;
    struct verifier *verifier = request->server->verifier;

    while (!request->replied) {
        enum component_state state;

        if (choose(request) == OUTCOME_WAITING)
            return OUTCOME_WAITING;
        if (request->replied)
            break;
        assert(blob->place.generation != NULL);
        state = verifier_insist(verifier, blob->place.generation, blob->place.component,
                                request_waiter(request));
        if (state == COMPONENT_CHECKING)
            return OUTCOME_WAITING;
        if (state == COMPONENT_UNAVAILABLE)
            return problem_reply_unavailable(request,
                                             zt_text_from(blob->place.generation->own_path));
        if (state != COMPONENT_CORRUPT) {
            stored_digest_want(request->server, blob->place.generation, blob->place.component);
            set_segments(request, &blob->place);
            return OUTCOME_READY;
        }
        /* The search itself skips a candidate whose state is CORRUPT. */
        blob->skip += atomic_load(&blob->place.generation->states[blob->place.component]) !=
                      COMPONENT_CORRUPT;
        drop_place(blob);
    }
    return OUTCOME_READY;
}

/* Finds the SHA-256 of a range that is one of the pieces with known digests. */
static bool range_sha256(struct request *request, uint64_t first, uint64_t length,
                         uint8_t out_sha256[SHA256_BYTES])
{
    const struct component_place *place = &((const struct blob *)request->context)->place;

    return place->generation != NULL &&
           stored_digest_piece(place->generation, place->component, first, length, out_sha256);
}

static void set_fields(struct request *request, const struct blob *blob)
{
    struct zt_text name = request->names[0];
    struct representation *reply = &request->reply;

    reply->etag = request_print(request, "\"%.*s\"", (int)name.length, name.bytes);
    reply->cache_control = "public, max-age=31536000, immutable";
    reply->media_type = "application/octet-stream";
    reply->ranges = true;
    reply->range_sha256 = range_sha256;
    reply->has_sha256 = true;
    memcpy(reply->sha256, blob->sha256, sizeof(reply->sha256));
}

/* Returns NULL if it has replied. */
static struct blob *blob_of(struct request *request)
{
    struct blob *blob = request->context;

    if (blob != NULL)
        return blob;
    blob = request_new_memory(request, sizeof(*blob));
    if (blob == NULL)
        return NULL;
    if (!zt_hex_read_lower(request->names[0], blob->sha256, SHA256_BYTES)) {
        problem_reply(request, PROBLEM_INVALID_NAME,
                      "a blob's name is its SHA-256 as 64 lower-case hex digits");
        return NULL;
    }
    request->context = blob;
    request_hold(request, blob, release_blob);
    return blob;
}

enum outcome blob_get(struct request *request)
{
    struct blob *blob = blob_of(request);

    if (blob == NULL)
        return OUTCOME_READY;
    if (choose(request) == OUTCOME_WAITING)
        return OUTCOME_WAITING;
    if (request->replied)
        return OUTCOME_READY;
    set_fields(request, blob);
    set_segments(request, &blob->place);
    representation_step(&request->reply, "verify", step_verify);
    return OUTCOME_READY;
}
