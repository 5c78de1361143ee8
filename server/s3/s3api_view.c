/* Names the files of views. They are named after the model, so that a name does not depend on other
 * files of the folder. */
#include "s3/s3api_view.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/export_reply.h"
#include "catalog/catalog.h"
#include "catalog/generation.h"

#define SAFETENSORS       ".safetensors"
#define SAFETENSORS_INDEX ".safetensors.index.json"
/* "-00001-of-00002". */
#define NUMBERS_LENGTH 15

#define KEPT_BYTES_MAX (UINT64_C(16) << 20)
#define KEPT_VIEWS_MAX 65536

static const char *const extensions[] = {".zt", ".gguf", ".mag", ".npz"};

const char *s3api_view_extension(unsigned index)
{
    return index < sizeof(extensions) / sizeof(extensions[0]) ? extensions[index] : NULL;
}

/* --- the files of a view --- */

uint32_t s3api_view_count(const struct model_view *view)
{
    return view->part_count > 1 ? view->part_count + 1 : view->part_count;
}

uint32_t s3api_view_part(const struct model_view *view, uint32_t i)
{
    assert(i < s3api_view_count(view));
    return i < view->part_count ? i : VIEW_INDEX;
}

uint64_t s3api_view_length(const struct model_view *view, uint32_t part)
{
    assert(part == VIEW_INDEX || part < view->part_count);
    return part == VIEW_INDEX ? view->index_length : view->parts[part].length;
}

size_t s3api_view_key(const struct model_view *view, uint32_t part,
                      char out_key[VIEW_NAME_SIZE + MODEL_PATH_SIZE])
{
    const char *slash = strrchr(view->path, '/');
    const size_t folder_length = slash != NULL ? (size_t)(slash + 1 - view->path) : 0;

    assert(folder_length < MODEL_PATH_SIZE);
    memcpy(out_key, view->path, folder_length);
    model_view_name(view, part, out_key + folder_length);
    return folder_length + strlen(out_key + folder_length);
}

void s3api_view_etag(const struct model_view *view, uint32_t part, char out_etag[S3API_ETAG_SIZE])
{
    char text[VIEW_NAME_SIZE + MODEL_PATH_SIZE + 64];
    struct file_identity identity = view->identity;
    size_t length;

    identity.size_bytes = s3api_view_length(view, part);
    length = s3api_view_key(view, part, text);
    snprintf(text + length, 64, "\n%d.%d %016" PRIx64, MODEL_VIEW_REVISION, EXPORT_REVISION,
             view->manifest_hash);
    s3api_etag(text, &identity, out_etag);
}

/* --- keeping views --- */

struct kept_view {
    struct model_view *view;
};

static void free_kept(void *value)
{
    model_view_release(((struct kept_view *)value)->view);
}

struct memo *s3api_views_new(void)
{
    const struct memo_rules rules = {.value_bytes = sizeof(struct kept_view),
                                     .free_value = free_kept,
                                     .most = {KEPT_BYTES_MAX, KEPT_VIEWS_MAX}};

    return memo_new(&rules);
}

/* Returns the path without folder and extension; NULL if out of memory. */
static char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');

    assert(dot != NULL);
    return strndup(name, (size_t)(dot - name));
}

static enum zt_status make(struct server *server, const char *path,
                           const struct file_identity *identity, struct kept_view *kept,
                           struct zt_error *error)
{
    char *stem = stem_of(path);
    const enum zt_status status =
        stem != NULL ? model_view_make(server, path, stem, identity, &kept->view, error)
                     : zt_fail_memory(error, "a view");

    free(stem);
    return status;
}

static void make_here(struct server *server, const char *path, const struct file_identity *identity,
                      struct kept_view *kept)
{
    struct zt_error error;

    if (make(server, path, identity, kept, &error) == ZT_OK)
        memo_done(kept,
                  (struct memo_charge){
                      sizeof(*kept->view) + kept->view->part_count * sizeof(struct view_part), 1});
    else
        memo_fail(kept, &error, MEMO_NOT_KEPT, 0);
    memo_release(kept);
}

static bool is_current(const struct server *server, const struct model_view *view,
                       const struct file_identity *identity)
{
    return store_identity_equal(&view->identity, identity) && !model_view_is_outdated(server, view);
}

/* Returns a reference to the kept view; NULL if it must be made again, or cannot be. */
static struct model_view *take_kept(struct server *server, const char *path,
                                    const struct file_identity *identity)
{
    struct kept_view *kept = memo_hold(server->s3_views, zt_text_from(path));
    struct model_view *view = NULL;

    if (kept == NULL)
        return NULL;
    if (memo_get(kept, 1, NULL) == MEMO_MAKE)
        make_here(server, path, identity, kept);
    if (memo_get(kept, 1, NULL) == MEMO_READY) {
        if (is_current(server, kept->view, identity))
            view = model_view_hold(kept->view);
        else
            memo_drop(kept);
    }
    memo_release(kept);
    return view;
}

struct model_view *s3api_view_get(struct server *server, const char *path,
                                  const struct file_identity *identity)
{
    struct model_view *view;

    assert(model_view_is_of(path));
    view = take_kept(server, path, identity);
    /* An outdated view was dropped. */
    return view != NULL ? view : take_kept(server, path, identity);
}

/* --- looking up --- */

/* Returns the length of the model's name in a key of a view; 0 if no view has the key. */
static size_t name_length(struct zt_text key)
{
    static const char form[] = "-#####-of-#####";
    const struct zt_text index = zt_text_from(SAFETENSORS_INDEX);
    const struct zt_text ending = zt_text_from(SAFETENSORS);
    size_t length;
    const char *numbers;

    if (zt_text_ends_with(key, index))
        return key.length - index.length;
    if (!zt_text_ends_with(key, ending))
        return 0;
    assert(key.length >= ending.length);
    length = key.length - ending.length;
    if (length <= NUMBERS_LENGTH)
        return length;
    numbers = key.bytes + length - NUMBERS_LENGTH;
    for (size_t i = 0; i < NUMBERS_LENGTH; i++)
        if (form[i] == '#' ? numbers[i] < '0' || numbers[i] > '9' : numbers[i] != form[i])
            return length;
    return length - NUMBERS_LENGTH;
}

/* Returns true if there is a stored model, or an index of one, of this name and ending. */
static bool has_file(const struct server *server, struct zt_text name, const char *ending)
{
    char path[MODEL_PATH_SIZE];
    struct generation *found;
    const int length = snprintf(path, sizeof(path), "%.*s%s", (int)name.length, name.bytes, ending);

    if (length >= (int)sizeof(path))
        return false;
    found = catalog_peek_path(server->catalog, zt_text_from(path));
    generation_release(found);
    return found != NULL;
}

static bool has_key(const struct model_view *view, uint32_t part, struct zt_text key)
{
    char text[VIEW_NAME_SIZE + MODEL_PATH_SIZE];

    return zt_text_equal((struct zt_text){text, s3api_view_key(view, part, text)}, key);
}

/* Returns the view of the model of this name. */
static struct model_view *find_by_name(struct server *server, struct zt_text name)
{
    struct generation *known;
    struct generation *current = NULL;
    struct model_view *view = NULL;

    if (has_file(server, name, SAFETENSORS) || has_file(server, name, SAFETENSORS_INDEX))
        return NULL;
    known = catalog_peek(server->catalog, name);
    if (known != NULL && model_view_is_of(known->path) &&
        !model_path_has_noncanonical_extension(known->path))
        current = catalog_update(server->catalog, known->path);
    if (current != NULL)
        view = s3api_view_get(server, current->path, &current->identity);
    assert(view == NULL || strcmp(view->path, known->path) == 0);
    generation_release(known);
    generation_release(current);
    return view;
}

/* Finds the view of a model of this name that has the key. */
static struct model_view *find_by_key(struct server *server, struct zt_text name,
                                      struct zt_text key, uint32_t *out_part)
{
    struct model_view *view = find_by_name(server, name);

    for (uint32_t i = 0; view != NULL && i < s3api_view_count(view); i++) {
        *out_part = s3api_view_part(view, i);
        if (has_key(view, *out_part, key))
            return view;
    }
    model_view_release(view);
    return NULL;
}

struct model_view *s3api_view_find(struct server *server, struct zt_text key, uint32_t *out_part)
{
    const size_t length = name_length(key);
    struct model_view *view = NULL;

    if (!server->config->hub.views || length == 0 || length > MODEL_NAME_MAX ||
        !store_path_is_served(key))
        return NULL;
    view = find_by_key(server, (struct zt_text){key.bytes, length}, key, out_part);
    /* The numbers may also be a part of the model's name. */
    if (view == NULL && zt_text_ends_with(key, zt_text_from(SAFETENSORS)) &&
        length < key.length - strlen(SAFETENSORS))
        view = find_by_key(server, (struct zt_text){key.bytes, key.length - strlen(SAFETENSORS)},
                           key, out_part);
    return view;
}
