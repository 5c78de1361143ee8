#include "transfers/local_bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote_digests.h"
#include "client/web_source.h"
#include "input/json_read.h"
#include "zt/model.h"

/* To read the header of a smaller file costs as much as the file. */
#define SMALL_BYTES ((uint64_t)256 << 10)

/* A component of the file, as the server's manifest names it. */
struct subject {
    const struct zt_object *object;
    const struct zt_component *component;
};

/* A file on a server, and the bytes of it that may be here. */
struct search {
    struct local_tensors *local;
    struct client *client;
    struct web_file *web;
    struct zt_model *model;
    struct wanted_bytes *wanted;
    struct subject *subjects;
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

        if (is_undigested(wanted) &&
            remote_digests_find(manifest, search->subjects[i].object, search->subjects[i].component,
                                wanted->sha256))
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
            struct wanted_bytes wanted = {
                .at = component->offset, .length = component->length, .dtype = component->dtype};

            if (component->shard != 0 || component->length == 0 ||
                !local_tensors_may_have(search->local, wanted.length, wanted.dtype))
                continue;
            take_stated(model, component, &wanted);
            needs_server = needs_server || is_undigested(&wanted);
            search->subjects[search->count] = (struct subject){object, component};
            search->wanted[search->count++] = wanted;
        }
    }
    return needs_server;
}

static enum zt_status find_tensors(struct search *search, struct copied_bytes *copied,
                                   struct zt_error *error)
{
    const uint32_t most = search->model->component_count;
    enum zt_status status = ZT_OK;

    search->subjects = calloc(most + 1, sizeof(*search->subjects));
    search->wanted = calloc(most + 1, sizeof(*search->wanted));
    if (search->subjects == NULL || search->wanted == NULL)
        status = zt_fail_memory(error, "local files");
    else if (list(search))
        ask(search);
    if (status == ZT_OK)
        status = local_tensors_find(search->local, search->wanted, search->count, copied, error);
    copied->needs_digest = search->is_asked;
    free(search->subjects);
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
    if (status == ZT_OK && copied->count == 0 &&
        local_tensors_may_have(local, web->size, WHOLE_FILE) && has_digest(&search, is_model))
        status = find_whole(&search, copied, error);
    return status;
}
