/* Checks kept files that another program may have written into. A file that went back into the
 * folder has a name there too, and a program that does not replace it but writes into it changes
 * the kept file as well. Its time of modification then differs from the commit's. It also differs
 * if equal bytes were stored twice, so the bytes decide. No program writes into an object of a
 * bucket. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/thread.h"
#include "store/versions/versions_state.h"
#include "zt/digest.h"
#include "zt/shards.h"

static bool was_checked(struct versions *versions, const struct versions_checked *wanted)
{
    bool is_found = false;

    pthread_mutex_lock(&versions->lock);
    for (unsigned i = 0; i < VERSIONS_CHECKED && !is_found; i++)
        is_found = store_identity_equal(&versions->checked[i].identity, &wanted->identity) &&
                   memcmp(versions->checked[i].sha256, wanted->sha256, 32) == 0;
    pthread_mutex_unlock(&versions->lock);
    return is_found;
}

static void note_checked(struct versions *versions, const struct versions_checked *checked)
{
    pthread_mutex_lock(&versions->lock);
    versions->checked[versions->next_checked++ % VERSIONS_CHECKED] = *checked;
    pthread_mutex_unlock(&versions->lock);
}

static enum zt_status check_kept(struct versions *versions, const struct history_file *file,
                                 struct zt_source *source, const struct file_identity *opened,
                                 struct zt_error *error)
{
    struct versions_checked checked = {.identity = *opened};
    struct zt_digest digest;
    enum zt_status status;

    if ((history_is_shared(versions->options.history) ||
         opened->modified_ns == file->modified_ns) &&
        opened->size_bytes == file->size_bytes)
        return ZT_OK;
    memcpy(checked.sha256, file->sha256, sizeof(checked.sha256));
    if (was_checked(versions, &checked))
        return ZT_OK;
    if (!thread_may_wait())
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET,
                       "a kept file has not been checked yet");
    assert(thread_may_wait());
    status = zt_source_digest(source, ZT_DIGEST_SHA256, NULL, &digest, error);
    if (status != ZT_OK)
        return status;
    if (memcmp(digest.bytes, file->sha256, sizeof(file->sha256)) != 0) {
        status =
            zt_fail(error, ZT_IO, NULL, ZT_NO_OFFSET,
                    "another program has written into the kept file %s of a commit", file->path);
        if (error != NULL)
            error->os_error = EBADMSG; /* clients get the message */
        return status;
    }
    note_checked(versions, &checked);
    return ZT_OK;
}

enum zt_status versions_open_kept(struct versions *versions, const struct history_file *file,
                                  struct zt_source **out_source, struct file_identity *out_identity,
                                  struct zt_error *error)
{
    enum zt_status status =
        history_open_kept(versions->options.history, file->sha256, out_source, out_identity, error);

    if (status != ZT_OK)
        return status;
    status = check_kept(versions, file, *out_source, out_identity, error);
    if (status != ZT_OK)
        zt_source_close(*out_source);
    return status;
}
