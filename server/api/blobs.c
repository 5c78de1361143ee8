/* Stored bytes by their SHA-256: the same answer from every server that has them, for ever. Any
 * component with that digest will do; one that turns out to be corrupt gives way to the next. */
#include "api/blobs.h"

#include <assert.h>
#include <string.h>

#include "catalog/catalog.h"
#include "http/exchange/problem.h"
#include "verify/found_digests.h"
#include "verify/verifier.h"
#include "zt/shards.h"

#define SHA256_BYTES 32

struct blob {
    uint8_t sha256[SHA256_BYTES];
    unsigned skip;  /* candidates that cannot be served, though their state does not say so */
    bool searching; /* on a worker */
    enum catalog_blob answer;
    struct component_place place; /* its generation is held by the blob, or NULL */
};

/* --- the name --- */

static int digit_of(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static bool parse_name(struct zt_text name, uint8_t out_sha256[SHA256_BYTES])
{
    if (name.length != 2 * (size_t)SHA256_BYTES)
        return false;
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        int high = digit_of(name.bytes[2 * i]);
        int low = digit_of(name.bytes[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        out_sha256[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

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
        catalog_find_blob(request->server->catalog, blob->sha256, blob->skip, true, &blob->place);
}

/* The next candidate that is not known to be corrupt, held in blob->place, whatever has become of
 * its file. */
static enum outcome search(struct request *request)
{
    struct blob *blob = request->context;

    if (blob->searching) {
        blob->searching = false;
        return OUTCOME_READY;
    }
    blob->answer =
        catalog_find_blob(request->server->catalog, blob->sha256, blob->skip, false, &blob->place);
    if (blob->answer != CATALOG_BLOB_BUSY)
        return OUTCOME_READY;
    blob->searching = true;
    return request_work_long(request, search_on_worker);
}

/* What the catalog has at the candidate's path now. True: it is the candidate, and its file is
 * open. */
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

static enum outcome refuse(struct request *request)
{
    struct blob *blob = request->context;

    if (blob->answer == CATALOG_BLOB_CORRUPT) {
        return problem_reply(
            request, PROBLEM_CORRUPT_COMPONENT,
            "no stored component that states this digest has it; they are not served");
    }
    return problem_reply(request, PROBLEM_NOT_FOUND,
                         "no stored component is known to have this digest");
}

/* READY: blob->place is the component, current and held; or replied. */
static enum outcome choose(struct request *request)
{
    struct blob *blob = request->context;

    for (;;) {
        enum outcome outcome;
        bool retired;

        if (blob->place.generation == NULL || blob->searching) {
            if (search(request) == OUTCOME_WAITING)
                return OUTCOME_WAITING;
            if (blob->answer != CATALOG_BLOB_FOUND)
                return refuse(request);
        }
        if (is_current(request, &outcome))
            return OUTCOME_READY;
        /* It is gone, or will be when it has been opened anew: then the search, which knows retired
         * ones, tells what there is. */
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

/* The candidate, or the next, until one is right, with verify: off too: caches keep it as
 * immutable. The tag is the digest, so whatever it is the tag stays true. */
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
        if (state != COMPONENT_CORRUPT) {
            set_segments(request, &blob->place);
            return OUTCOME_READY;
        }
        /* Where its state says so too the search passes over it by itself. */
        blob->skip += atomic_load(&blob->place.generation->states[blob->place.component]) !=
                      COMPONENT_CORRUPT;
        drop_place(blob);
    }
    return OUTCOME_READY;
}

/* Of a range that is one of the pieces whose digests were found. */
static bool part_sha256(struct request *request, uint64_t first, uint64_t length,
                        uint8_t out_sha256[SHA256_BYTES])
{
    const struct component_place *place = &((const struct blob *)request->context)->place;

    return place->generation != NULL &&
           found_digest_piece(place->generation, place->component, first, length, out_sha256);
}

static void set_fields(struct request *request, const struct blob *blob)
{
    struct zt_text name = request->names[0];
    struct representation *reply = &request->reply;

    reply->etag = request_print(request, "\"%.*s\"", (int)name.length, name.bytes);
    reply->cache_control = "public, max-age=31536000, immutable";
    reply->media_type = "application/octet-stream";
    reply->ranges = true;
    reply->part_sha256 = part_sha256;
    reply->has_sha256 = true;
    memcpy(reply->sha256, blob->sha256, sizeof(reply->sha256));
}

/* NULL: replied. */
static struct blob *blob_of(struct request *request)
{
    struct blob *blob = request->context;

    if (blob != NULL)
        return blob;
    blob = request_allocate(request, sizeof(*blob));
    if (blob == NULL) {
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
        return NULL;
    }
    *blob = (struct blob){.skip = 0};
    if (!parse_name(request->names[0], blob->sha256)) {
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
    representation_step(&request->reply, step_verify);
    return OUTCOME_READY;
}
