/* Uploads before their publication: files of a local folder, the staging folder, with all that a
 * folder's uploads can do. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/s3_write/s3_multipart.h"
#include "store/store_local.h"

static struct store *staging_of(const struct store *store)
{
    return ((const struct s3_store *)store)->writing->staging;
}

static enum zt_status fail_staging(struct zt_error *error)
{
    return zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "this server takes no uploads");
}

/* Nothing is wrong with the models' place: this server has none for uploads, as if it were full. */
static enum zt_status judge_staging(enum zt_status status, struct zt_error *error)
{
    if (status != ZT_IO || error == NULL)
        return status;
    return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                   "the folder of uploads in the cache cannot be written to: %s",
                   strerrordesc_np(error->os_error));
}

static const struct store_ops *staged_ops(const struct stored_upload *upload)
{
    const struct s3_upload *mine = (const struct s3_upload *)upload;

    assert(mine->staged != NULL);
    return mine->staged->store->ops;
}

/* Takes over a staged upload, which is abandoned on failure. */
static enum zt_status wrap(struct store *store, struct stored_upload *staged,
                           struct stored_upload **out_upload, struct zt_error *error)
{
    struct s3_upload *upload = calloc(1, sizeof(*upload));

    if (upload == NULL) {
        staged->store->ops->abandon(staged);
        return zt_fail_memory(error, "an upload");
    }
    upload->base.store = store;
    upload->staged = staged;
    *out_upload = &upload->base;
    return ZT_OK;
}

enum zt_status s3_create(struct store *store, uint64_t expected_bytes,
                         struct stored_upload **out_upload, struct zt_error *error)
{
    struct store *staging = staging_of(store);
    struct stored_upload *staged;
    enum zt_status status;

    if (staging == NULL)
        return fail_staging(error);
    status = judge_staging(staging->ops->create(staging, expected_bytes, &staged, error), error);
    return status == ZT_OK ? wrap(store, staged, out_upload, error) : status;
}

enum zt_status s3_write_at(struct stored_upload *upload, uint64_t offset, const void *bytes,
                           size_t length, struct zt_error *error)
{
    return staged_ops(upload)->write_at(s3_upload_of(upload)->staged, offset, bytes, length, error);
}

enum zt_status s3_read_back(struct stored_upload *upload, struct zt_source **out_source,
                            struct zt_error *error)
{
    return staged_ops(upload)->read_back(s3_upload_of(upload)->staged, out_source, error);
}

static void free_upload(struct s3_upload *upload)
{
    s3_keeper_abort(s3_store_of(upload), upload->multipart);
    free(upload);
}

void s3_abandon(struct stored_upload *upload)
{
    if (upload == NULL)
        return;
    staged_ops(upload)->abandon(s3_upload_of(upload)->staged);
    free_upload(s3_upload_of(upload));
}

/* The cache links the file before its name in the staging folder is removed: a file without any
 * name could not get one again. */
void s3_upload_end(struct s3_upload *upload, const struct file_identity *identity)
{
    const struct s3_store *store = s3_store_of(upload);
    const int descriptor = fcntl(local_upload_of(upload->staged)->descriptor, F_DUPFD_CLOEXEC, 0);
    uint8_t key[CACHE_KEY_BYTES];

    if (descriptor >= 0 && identity != NULL) {
        s3_cache_key(store, upload->path, identity, key);
        cache_adopt(store->cache, key, descriptor, upload->length);
    } else if (descriptor >= 0) {
        close(descriptor);
    }
    store_local_finish(upload->staged);
    free_upload(upload);
}

enum zt_status s3_space(const struct store *store, uint64_t *out_bytes, struct zt_error *error)
{
    const struct store *staging = staging_of(store);

    return staging != NULL ? staging->ops->space(staging, out_bytes, error) : fail_staging(error);
}

void s3_set_reserve(struct store *store, uint64_t reserve_bytes)
{
    struct store *staging = staging_of(store);

    if (staging != NULL)
        staging->ops->set_reserve(staging, reserve_bytes);
}

/* --- kept uploads --- */

enum zt_status s3_keep(struct store *store, const char *id, struct zt_error *error)
{
    struct store *staging = staging_of(store);

    return staging != NULL ? judge_staging(staging->ops->keep(staging, id, error), error)
                           : fail_staging(error);
}

enum zt_status s3_kept_create(struct store *store, const char *id, const char *name,
                              uint64_t expected_bytes, struct stored_upload **out_upload,
                              struct zt_error *error)
{
    struct store *staging = staging_of(store);
    struct stored_upload *staged;
    enum zt_status status;

    if (staging == NULL)
        return fail_staging(error);
    status = judge_staging(
        staging->ops->kept_create(staging, id, name, expected_bytes, &staged, error), error);
    return status == ZT_OK ? wrap(store, staged, out_upload, error) : status;
}

static enum zt_status not_found(struct zt_error *error)
{
    return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such upload");
}

enum zt_status s3_kept_open(struct store *store, const char *id, const char *name,
                            struct stored_upload **out_upload, struct zt_error *error)
{
    struct store *staging = staging_of(store);
    struct stored_upload *staged;
    enum zt_status status;

    if (staging == NULL)
        return not_found(error);
    status = staging->ops->kept_open(staging, id, name, &staged, error);
    return status == ZT_OK ? wrap(store, staged, out_upload, error) : status;
}

enum zt_status s3_kept_remove(struct store *store, const char *id, const char *name,
                              struct zt_error *error)
{
    struct store *staging = staging_of(store);

    return staging != NULL ? staging->ops->kept_remove(staging, id, name, error) : not_found(error);
}

enum zt_status s3_kept_drop(struct store *store, const char *id, struct zt_error *error)
{
    struct store *staging = staging_of(store);

    return staging != NULL ? staging->ops->kept_drop(staging, id, error) : not_found(error);
}

enum zt_status s3_kept_list(struct store *store, bool (*visit)(void *context, const char *id),
                            void *context, struct zt_error *error)
{
    struct store *staging = staging_of(store);

    return staging != NULL ? staging->ops->kept_list(staging, visit, context, error) : ZT_OK;
}

enum zt_status s3_sync(struct stored_upload *upload, struct zt_error *error)
{
    return staged_ops(upload)->sync(s3_upload_of(upload)->staged, error);
}

enum zt_status s3_truncate(struct stored_upload *upload, uint64_t length, struct zt_error *error)
{
    return staged_ops(upload)->truncate(s3_upload_of(upload)->staged, length, error);
}

enum zt_status s3_copy(struct stored_upload *from, uint64_t from_offset, struct stored_upload *to,
                       uint64_t to_offset, uint64_t length, struct zt_error *error)
{
    return staged_ops(from)->copy(s3_upload_of(from)->staged, from_offset, s3_upload_of(to)->staged,
                                  to_offset, length, error);
}

bool s3_discard(struct stored_upload *upload, uint64_t offset, uint64_t length)
{
    return staged_ops(upload)->discard(s3_upload_of(upload)->staged, offset, length);
}

uint64_t s3_length(struct stored_upload *upload)
{
    return staged_ops(upload)->length(s3_upload_of(upload)->staged);
}
