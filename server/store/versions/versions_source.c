/* Files of commits: sources with the identity of the commit's file, whose bytes are in a kept file
 * or in the folder's. They have the file's descriptor and mapping, so they are served like it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "store/versions/versions_state.h"

/* How often to look among the kept files and in the folder: a file moves from one to the other when
 * it is replaced, and back when an earlier commit is restored. */
#define LOOKS_MAX 3

struct commit_file {
    struct zt_source base;  /* first */
    struct zt_source *file; /* owned */
    struct file_identity identity;
    struct file_identity opened; /* of file */
    struct history_repo repo;
    char commit[HISTORY_COMMIT_SIZE];
};

static const struct commit_file *cast(const struct zt_source *source)
{
    return (const struct commit_file *)source;
}

/* --- the source --- */

static uint64_t source_size(const struct zt_source *source)
{
    return zt_source_size(cast(source)->file);
}

static enum zt_status source_read_at(struct zt_source *source, uint64_t offset, void *buffer,
                                     size_t length, struct zt_error *error)
{
    assert(cast(source)->file != NULL);
    return zt_source_read_at(cast(source)->file, offset, buffer, length, error);
}

static const uint8_t *source_map(struct zt_source *source)
{
    return zt_source_map(cast(source)->file);
}

static int source_descriptor(const struct zt_source *source)
{
    return zt_source_descriptor(cast(source)->file);
}

static void source_close(struct zt_source *source)
{
    assert(cast(source)->file != NULL);
    zt_source_close(cast(source)->file);
    free(source);
}

static const struct zt_source_ops commit_file_ops = {.size = source_size,
                                                     .read_at = source_read_at,
                                                     .map = source_map,
                                                     .close = source_close,
                                                     .descriptor = source_descriptor};

static enum zt_status source_pin(struct zt_source *source, uint64_t offset, uint64_t length,
                                 bool wait, struct zt_pin *out_pin, struct zt_error *error)
{
    return zt_source_pin(cast(source)->file, offset, length, wait, out_pin, error);
}

static void source_advise(struct zt_source *source, uint64_t offset, uint64_t length)
{
    zt_source_advise(cast(source)->file, offset, length);
}

static void source_invalidate(struct zt_source *source, uint64_t offset, uint64_t length)
{
    (void)zt_source_invalidate(cast(source)->file, offset, length);
}

/* Of a bucket. */
static const struct zt_source_ops remote_file_ops = {.size = source_size,
                                                     .read_at = source_read_at,
                                                     .map = source_map,
                                                     .close = source_close,
                                                     .pin = source_pin,
                                                     .advise = source_advise,
                                                     .invalidate = source_invalidate};

bool versions_source_identity(struct versions *versions, struct zt_source *source,
                              struct file_identity *out_identity)
{
    const struct commit_file *file = cast(source);
    struct store *inner = versions->base.inner;
    struct history_found found;
    struct file_identity now;
    struct zt_error ignored;
    enum zt_status status;

    if (source->ops != &commit_file_ops && source->ops != &remote_file_ops)
        return false;
    *out_identity = file->identity;
    /* Links to the file change its status time. */
    if (!inner->ops->identity_of(inner, file->file, &now) ||
        now.size_bytes != file->opened.size_bytes || now.modified_ns != file->opened.modified_ns)
        out_identity->size_bytes = UINT64_MAX;
    else {
        status = history_find(versions->options.history, &file->repo, zt_text_from(file->commit),
                              &found, &ignored);
        /* Downloads continue: the bytes are the same. */
        if (status != ZT_OK && status != ZT_UNAVAILABLE)
            out_identity->changed_ns = INT64_MIN;
    }
    return true;
}

/* --- opening --- */

/* Returns ZT_NOT_FOUND if the folder's file is another one. */
static enum zt_status compare(struct versions *versions, const char *path,
                              const struct file_identity *identity, const struct history_file *file,
                              struct zt_error *error)
{
    const struct versions_options *options = &versions->options;
    uint8_t sha256[32];

    assert(options->sha256 != NULL && options->known_sha256 != NULL);
    if (identity->size_bytes == file->size_bytes &&
        !options->known_sha256(options->context, path, identity, sha256)) {
        enum zt_status status;

        if (!thread_may_wait())
            return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                           "the SHA-256 of the current file is not known yet");
        status = options->sha256(options->context, path, identity, sha256, error);
        if (status != ZT_OK)
            return status == ZT_STALE ? ZT_NOT_FOUND : status;
    }
    return identity->size_bytes == file->size_bytes &&
                   memcmp(sha256, file->sha256, sizeof(sha256)) == 0
               ? ZT_OK
               : zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                         "the file of this commit is not kept");
}

static enum zt_status open_current(struct versions *versions, const struct versions_place *place,
                                   const struct history_file *file, struct zt_source **out_source,
                                   struct file_identity *out_identity, struct zt_error *error)
{
    struct store *inner = versions->base.inner;
    char path[MODEL_PATH_SIZE];
    enum zt_status status;

    if (!versions_current_path(&place->repo, file, path))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the name is too long");
    status = inner->ops->open(inner, path, out_source, out_identity, error);
    if (status != ZT_OK)
        return status;
    status = compare(versions, path, out_identity, file, error);
    if (status != ZT_OK)
        zt_source_close(*out_source);
    return status;
}

static bool ignore_file(void *context, const char *path, const struct file_identity *identity)
{
    (void)context;
    (void)path;
    (void)identity;
    return true;
}

/* Another server may have written the model since the bucket was last listed. */
static void look_up_again(struct versions *versions, const struct versions_place *place,
                          const struct history_file *file)
{
    struct store *inner = versions->base.inner;
    char path[MODEL_PATH_SIZE];
    char model[MODEL_NAME_MAX + 1];
    struct zt_error ignored;

    if (store_may_wait(inner) && thread_may_wait() &&
        versions_current_path(&place->repo, file, path) && model_path_name(path, model))
        (void)inner->search->look_up(inner, zt_text_from(model), ignore_file, NULL, &ignored);
}

/* Makes a source with the commit's identity, which takes over the file's on success. */
static enum zt_status wrap(const struct versions_place *place, const struct history_file *file,
                           const struct file_identity *opened, struct zt_source **source,
                           struct zt_error *error)
{
    struct commit_file *wrapped = malloc(sizeof(*wrapped));

    assert(*source != NULL);
    if (wrapped == NULL)
        return zt_fail_memory(error, "a file of a commit");
    *wrapped = (struct commit_file){.base.ops = zt_source_is_remote(*source) ? &remote_file_ops
                                                                             : &commit_file_ops,
                                    .file = *source,
                                    .identity = versions_identity(file),
                                    .opened = *opened,
                                    .repo = place->repo};
    memcpy(wrapped->commit, place->commit, sizeof(wrapped->commit));
    *source = &wrapped->base;
    return ZT_OK;
}

enum zt_status versions_open_file(struct versions *versions, const struct versions_place *place,
                                  const struct history_file *file, struct zt_source **out_source,
                                  struct zt_error *error)
{
    struct file_identity opened;
    struct zt_source *source = NULL;
    enum zt_status status = ZT_NOT_FOUND;

    for (unsigned i = 0; i < LOOKS_MAX && status == ZT_NOT_FOUND; i++) {
        status = versions_open_kept(versions, file, &source, &opened, error);
        if (status == ZT_NOT_FOUND)
            status = open_current(versions, place, file, &source, &opened, error);
        if (status == ZT_NOT_FOUND && i == 0)
            look_up_again(versions, place, file);
    }
    if (status != ZT_OK)
        return status;
    assert(source != NULL);
    status = wrap(place, file, &opened, &source, error);
    if (status == ZT_OK)
        *out_source = source;
    else
        zt_source_close(source);
    return status;
}
