#include "transfers/local_bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "client/remote_digests.h"
#include "client/web_source.h"
#include "input/json_read.h"
#include "zt/model.h"

/* To read the header of a smaller file costs as much as the file. */
#define SMALL_BYTES ((uint64_t)256 << 10)
/* A smaller tensor is fetched in less time than its difference. */
#define DIFFERENCE_LEAST ((uint64_t)64 << 10)
#define DIFFERENCE_QUERY "?coding=xor-zstd&base=sha256:"

/* A file on a server, and the bytes of it that may be here. */
struct search {
    struct local_tensors *local;
    struct client *client;
    struct web_file *web;
    struct zt_model *model;
    struct wanted_bytes *wanted;
    size_t count;
    bool is_asked; /* some digests are the server's */
};

/* --- whole files --- */

static enum zt_status find_whole(struct search *search, struct copied_bytes *copied,
                                 struct zt_error *error)
{
    struct wanted_bytes whole = {
        .length = search->web->size, .dtype = WHOLE_FILE, .has_sha256 = true};

    assert(search->web->has_sha256);
    memcpy(whole.sha256, search->web->sha256, sizeof(whole.sha256));
    return local_tensors_find(search->local, &whole, 1, copied, error);
}

/* --- tensors --- */

static void take_stated(const struct zt_model *model, const struct zt_component *component,
                        struct wanted_bytes *wanted)
{
    struct zt_digest digest;

    if (!stored_digest_of(model, component, &digest))
        return;
    if (digest.algorithm == ZT_DIGEST_SHA256) {
        wanted->has_sha256 = true;
        memcpy(wanted->sha256, digest.bytes, sizeof(wanted->sha256));
    } else if (digest.algorithm == ZT_DIGEST_XXH3) {
        wanted->has_xxh3 = true;
        memcpy(wanted->xxh3, digest.bytes, sizeof(wanted->xxh3));
    }
}

static bool is_undigested(const struct wanted_bytes *wanted)
{
    return !wanted->has_sha256 && !wanted->has_xxh3;
}

/* Asks the server for the digests that the file does not state. */
static void ask(struct search *search)
{
    struct json_t *manifest = remote_digests_ask(search->client, &search->web->place);

    for (size_t i = 0; manifest != NULL && i < search->count; i++) {
        struct wanted_bytes *wanted = &search->wanted[i];

        if (is_undigested(wanted) && remote_digests_find(manifest, wanted->subject.object,
                                                         wanted->subject.component, wanted->sha256))
            wanted->has_sha256 = search->is_asked = true;
    }
    json_object_free(manifest);
}

/* Lists the components that may be here. */
static bool list(struct search *search)
{
    const struct zt_model *model = search->model;
    bool needs_server = false;

    assert(search->count == 0);
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        for (uint32_t j = 0; j < object->component_count; j++) {
            const struct zt_component *component = &zt_object_components(model, object)[j];
            struct wanted_bytes wanted = {.subject = {model, object, component},
                                          .at = component->offset,
                                          .length = component->length,
                                          .dtype = component->dtype};

            if (component->shard != 0 || component->length == 0 ||
                !local_tensors_may_have(search->local, wanted.length, wanted.dtype))
                continue;
            take_stated(model, component, &wanted);
            needs_server = needs_server || is_undigested(&wanted);
            search->wanted[search->count++] = wanted;
        }
    }
    return needs_server;
}

/* --- differences --- */

static struct zt_digest digest_of(const struct wanted_bytes *wanted)
{
    struct zt_digest digest = {.algorithm = ZT_DIGEST_XXH3, .length_bytes = sizeof(wanted->xxh3)};

    assert(!is_undigested(wanted));
    if (!wanted->has_sha256) {
        memcpy(digest.bytes, wanted->xxh3, sizeof(wanted->xxh3));
        return digest;
    }
    digest.algorithm = ZT_DIGEST_SHA256;
    digest.length_bytes = sizeof(wanted->sha256);
    memcpy(digest.bytes, wanted->sha256, sizeof(wanted->sha256));
    return digest;
}

/* Returns NULL if the server cannot be asked for it. */
static char *target_of(const struct search *search, const struct wanted_bytes *wanted,
                       const struct similar_tensor *base)
{
    char query[sizeof(DIFFERENCE_QUERY) + 2 * sizeof(base->sha256)] = DIFFERENCE_QUERY;

    zt_hex_write(query + strlen(DIFFERENCE_QUERY), base->sha256, sizeof(base->sha256));
    query[sizeof(query) - 1] = '\0';
    return remote_component_target(&search->web->place, wanted->subject.object,
                                   wanted->subject.component, query);
}

/* Adds the tensors of which other versions are here. */
static enum zt_status add_differences(struct search *search, struct differences *differences,
                                      struct zt_error *error)
{
    struct similar_tensor *similar = NULL;
    enum zt_status status =
        local_tensors_find_similar(search->local, search->wanted, search->count, &similar, error);

    differences->refusals = local_tensors_refusals(search->local);
    for (size_t i = 0; i < search->count && status == ZT_OK; i++) {
        const struct wanted_bytes *wanted = &search->wanted[i];
        struct difference difference = {.at = wanted->at,
                                        .length = wanted->length,
                                        .base = similar[i].source,
                                        .base_at = similar[i].at};

        if (difference.base != NULL && wanted->length >= DIFFERENCE_LEAST)
            difference.target = target_of(search, wanted, &similar[i]);
        if (difference.target == NULL)
            continue;
        difference.digest = digest_of(wanted);
        status = differences_add(differences, &difference, error);
        if (status != ZT_OK)
            free(difference.target);
    }
    free(similar);
    return status;
}

static enum zt_status find_tensors(struct search *search, struct copied_bytes *copied,
                                   struct zt_error *error)
{
    enum zt_status status = ZT_OK;

    search->wanted = calloc((size_t)search->model->component_count + 1, sizeof(*search->wanted));
    if (search->wanted == NULL)
        status = zt_fail_memory(error, "local files");
    else if (list(search))
        ask(search);
    if (status == ZT_OK)
        status = local_tensors_find(search->local, search->wanted, search->count, copied, error);
    if (status == ZT_OK)
        status = add_differences(search, &copied->differences, error);
    copied->needs_digest = search->is_asked;
    free(search->wanted);
    return status;
}

/* --- both --- */

/* Returns false for other files, which can only be found as a whole. */
static bool open_model(struct search *search)
{
    struct zt_source *source = NULL;
    struct zt_error error;
    const bool is_model = search->web->size > SMALL_BYTES &&
                          web_source_open(search->client, search->web, &source, &error) == ZT_OK &&
                          zt_model_open(source, &search->model, &error) == ZT_OK;

    zt_source_close(source);
    return is_model;
}

/* All checkpoints of a model have one size, so asking for the digest of a whole model would seldom
 * help. */
static bool has_digest(struct search *search, bool is_model)
{
    struct web_file *web = search->web;

    return web->has_sha256 ||
           (!is_model && web_file_ask_digest(search->client, web) && web->has_sha256);
}

enum zt_status local_bytes_find(struct local_tensors *local, struct client *client,
                                struct web_file *web, struct copied_bytes *copied,
                                struct zt_error *error)
{
    struct search search = {.local = local, .client = client, .web = web};
    const bool is_model = open_model(&search);
    enum zt_status status = ZT_OK;

    assert(web->has_ranges && copied->count == 0);
    if (is_model) {
        status = find_tensors(&search, copied, error);
        zt_model_free(search.model);
    }
    if (status == ZT_OK && copied->count == 0 && copied->differences.count == 0 &&
        local_tensors_may_have(local, web->size, WHOLE_FILE) && has_digest(&search, is_model))
        status = find_whole(&search, copied, error);
    return status;
}
