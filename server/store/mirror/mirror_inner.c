/* The operations that the inner store carries out: everything that writes, and what replicas
 * share. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "store/mirror/mirror_store.h"

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

static enum zt_status may_publish(struct store *store, const char *path,
                                  const struct store_leaving *leaving, struct zt_error *error)
{
    return store->inner->ops->may_publish(store->inner, path, leaving, error);
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

static enum zt_status exclude(struct store *store, const char *name, int64_t by_ms, int *out_lock,
                              struct zt_error *error)
{
    return store->inner->ops->exclude(store->inner, name, by_ms, out_lock, error);
}

static enum zt_status remove_file(struct store *store, const char *path,
                                  const struct store_expected *expected, struct zt_error *error)
{
    return store->inner->ops->remove(store->inner, path, expected, error);
}

static enum zt_status settle(struct store *store, const char *path, struct zt_error *error)
{
    return store->inner->ops->settle(store->inner, path, error);
}

static void remove_emptied(struct store *store, const char *path, size_t kept_length)
{
    store->inner->ops->remove_emptied(store->inner, path, kept_length);
}

static enum zt_status prepare(struct store *store, struct staged_file *file, const char *path,
                              const uint8_t sha256[32], struct zt_error *error)
{
    return store->inner->claims->prepare(store->inner, file, path, sha256, error);
}

static enum zt_status claim(struct store *store, struct zt_text name, int64_t by_ms,
                            struct store_claim **out_claim, struct zt_error *error)
{
    return store->inner->claims->claim(store->inner, name, by_ms, out_claim, error);
}

static const char *refusal(const struct store *store)
{
    return store->inner->claims->refusal(store->inner);
}

static enum zt_status read_fact(struct store *store, const struct file_identity *identity,
                                const char *kind, char **out_text, size_t *out_length,
                                struct zt_error *error)
{
    return store->inner->claims->read_fact(store->inner, identity, kind, out_text, out_length,
                                           error);
}

static enum zt_status write_fact(struct store *store, const struct file_identity *identity,
                                 const char *kind, const char *text, size_t length,
                                 struct zt_error *error)
{
    return store->inner->claims->write_fact(store->inner, identity, kind, text, length, error);
}

/* If the inner store lacks an operation, so does the mirror. */
void mirror_set_inner_ops(struct mirror *mirror)
{
    const struct store *inner = mirror->base.inner;
    const struct store_ops *ops = inner->ops;

    mirror->ops.publish = publish;
    mirror->ops.may_publish = ops->may_publish != NULL ? may_publish : NULL;
    mirror->ops.find_links = ops->find_links != NULL ? find_links : NULL;
    mirror->ops.make_folder = ops->make_folder != NULL ? make_folder : NULL;
    mirror->ops.exclude = ops->exclude != NULL ? exclude : NULL;
    mirror->ops.remove = remove_file;
    mirror->ops.settle = ops->settle != NULL ? settle : NULL;
    mirror->ops.remove_emptied = ops->remove_emptied != NULL ? remove_emptied : NULL;
    if (inner->claims == NULL)
        return;
    mirror->claims = (struct store_claim_ops){.prepare = prepare,
                                              .claim = claim,
                                              .release = inner->claims->release,
                                              .refusal = refusal,
                                              .read_fact = read_fact,
                                              .write_fact = write_fact};
    mirror->base.claims = &mirror->claims;
}
