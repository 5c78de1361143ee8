/* The operations that the inner store carries out (store_inner.h): those that take a repository's
 * name end its mirroring. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "store/mirror/mirror_store.h"
#include "store/store_inner.h"

/* --- names that writers take --- */

void mirror_give_up(struct mirror *mirror, const char *repository)
{
    struct mirror_version *versions[MIRROR_VERSIONS_MAX];
    unsigned count;

    if (!mirror_index_remove(&mirror->index, repository, versions, &count))
        return;
    log_write(LOG_LEVEL_INFO, "mirror: %s is not mirrored any more: the store itself has it",
              repository);
    for (unsigned i = 0; i < count; i++) {
        mirror_note_changes(mirror, repository, versions[i]);
        mirror_version_release(versions[i]);
    }
}

/* A repository that was looked up while a writer took its name must not hide what is published.
 * The lookup looks into the store after it has added the repository; here it is the other way
 * around, so that one of the two sees the other. */
static void yield(struct mirror *mirror, const char *path)
{
    struct mirror_name name;

    for (unsigned parts = 2; parts > 0; parts--)
        if (mirror_name_split(zt_text_from(path), parts, &name) && name.commit[0] == '\0')
            mirror_give_up(mirror, name.repository);
}

/* --- the operations --- */

static enum zt_status publish(struct store *store, struct staged_file *file, const char *path,
                              const struct store_expected *expected, struct zt_error *error)
{
    const enum zt_status status =
        store->inner->ops->publish(store->inner, file, path, expected, error);

    if (status == ZT_OK)
        yield(mirror_of(store), path);
    return status;
}

/* Mirrored repositories have no links. */
static void find_links(struct store *store, const char *folder, struct store_links *out_links)
{
    struct mirror_target target;

    if (!mirror_find_known(mirror_of(store), folder, &target)) {
        store->inner->ops->find_links(store->inner, folder, out_links);
        return;
    }
    mirror_version_release(target.version);
    *out_links = (struct store_links){.is_known = true};
    snprintf(out_links->real, sizeof(out_links->real), "%s", folder);
}

static enum zt_status make_folder(struct store *store, const char *path, struct zt_error *error)
{
    const enum zt_status status = store->inner->ops->make_folder(store->inner, path, error);

    if (status == ZT_OK)
        yield(mirror_of(store), path);
    return status;
}

void mirror_set_inner_ops(struct mirror *mirror)
{
    const struct store *inner = mirror->base.inner;

    mirror->ops.publish = publish;
    mirror->ops.find_links = find_links;
    mirror->ops.make_folder = make_folder;
    store_inner_ops(inner, &mirror->ops);
    if (inner->claims == NULL)
        return;
    store_inner_claims(inner, &mirror->claims);
    mirror->base.claims = &mirror->claims;
}
