/* Revisions of mirrored repositories, stated digests of their files, and refusals to write to
 * them. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/mirror/mirror_store.h"

static enum zt_status find_revision(struct store *store, const char *repository,
                                    struct zt_text revision, struct store_revision *out_revision,
                                    struct zt_error *error)
{
    struct store *inner = store->inner;
    struct mirror_found found;
    bool fits;
    enum zt_status status =
        mirror_find_revision(mirror_of(store), repository, revision, &found, error);

    if (status == ZT_NOT_FOUND && inner->revisions != NULL)
        return inner->revisions->find(inner, repository, revision, out_revision, error);
    if (status != ZT_OK)
        return status;
    *out_revision = (struct store_revision){.is_current = found.is_current};
    memcpy(out_revision->commit, found.version->commit, sizeof(out_revision->commit));
    if (found.is_current)
        fits = snprintf(out_revision->folder, sizeof(out_revision->folder), "%s", repository) <
               (int)sizeof(out_revision->folder);
    else
        fits = mirror_name_snapshot(repository, found.version->commit, out_revision->folder);
    mirror_version_release(found.version);
    return fits ? ZT_OK : zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "the name is too long");
}

static void fill_stated(struct mirror *mirror, const struct mirror_entry *entry,
                        struct store_stated *out_stated)
{
    *out_stated = (struct store_stated){.has_sha256 = entry->digest_kind == UPSTREAM_SHA256,
                                        .has_git_sha1 = entry->digest_kind == UPSTREAM_GIT_SHA1};
    if (out_stated->has_sha256)
        memcpy(out_stated->sha256, entry->digest, sizeof(out_stated->sha256));
    if (out_stated->has_git_sha1)
        memcpy(out_stated->git_sha1, entry->digest, sizeof(out_stated->git_sha1));
    pthread_mutex_lock(&mirror->index.lock);
    out_stated->is_verified = entry->is_verified;
    pthread_mutex_unlock(&mirror->index.lock);
}

/* Finds the file with this identity. The caller releases the version in *out_target, also on
 * failure. */
static const struct mirror_entry *find_same(struct mirror *mirror, const char *path,
                                            const struct file_identity *identity,
                                            struct mirror_target *out_target)
{
    const struct mirror_entry *entry = NULL;
    struct file_identity known;

    if (mirror_find_known(mirror, path, out_target))
        entry = mirror_version_find(out_target->version, out_target->path);
    if (entry == NULL)
        return NULL;
    known = mirror_entry_identity(out_target->version, entry);
    return store_identity_equal(&known, identity) ? entry : NULL;
}

static bool state_file(struct store *store, const char *path, const struct file_identity *identity,
                       struct store_stated *out_stated)
{
    struct mirror *mirror = mirror_of(store);
    struct mirror_target target;
    const struct mirror_entry *entry = find_same(mirror, path, identity, &target);

    if (entry != NULL)
        fill_stated(mirror, entry, out_stated);
    mirror_version_release(target.version);
    return entry != NULL || store_state(store->inner, path, identity, out_stated);
}

/* How long after the start clients continue what an earlier process has sent them. */
#define CONTINUED_MS 3600000

/* Before the start, perhaps. */
static bool was_wrong_before(struct mirror *mirror, const struct mirror_entry *entry)
{
    int64_t wrong_s;

    pthread_mutex_lock(&mirror->index.lock);
    wrong_s = entry->wrong_s;
    pthread_mutex_unlock(&mirror->index.lock);
    return wrong_s != 0 && clock_wall_ns() / CLOCK_NS_PER_S - wrong_s < CONTINUED_MS / 1000;
}

static bool was_wrong(struct store *store, const char *path, const struct file_identity *identity)
{
    struct mirror *mirror = mirror_of(store);
    struct mirror_target target;
    const struct mirror_entry *entry = find_same(mirror, path, identity, &target);
    bool wrong = false;

    if (entry != NULL) {
        const struct mirror_place place = mirror_place_of(mirror, &target, entry);

        wrong = mirror_file_was_wrong(mirror->upstreams[target.upstream].files, &place) ||
                was_wrong_before(mirror, entry);
    }
    mirror_version_release(target.version);
    return wrong;
}

/* A process that was killed may have passed on bytes without keeping their checksums, or may have
 * found out that they are wrong: that the file is verified by now says nothing about them. */
static bool may_be_wrong(struct store *store, const char *path,
                         const struct file_identity *identity)
{
    struct mirror *mirror = mirror_of(store);
    struct mirror_target target;
    const struct mirror_entry *entry = find_same(mirror, path, identity, &target);
    bool may = false;

    if (entry != NULL) {
        pthread_mutex_lock(&mirror->index.lock);
        may = entry->was_begun_before &&
              (!entry->is_verified || clock_ms() - mirror->opened_ms < CONTINUED_MS);
        pthread_mutex_unlock(&mirror->index.lock);
    }
    mirror_version_release(target.version);
    return may;
}

static bool refuses(struct store *store, const char *path, char out_why[STORE_WHY_SIZE])
{
    struct mirror *mirror = mirror_of(store);
    struct store *inner = store->inner;
    struct mirror_name name;
    const unsigned upstream = mirror_split_known(mirror, zt_text_from(path), &name);

    if (upstream != UINT_MAX)
        snprintf(
            out_why, STORE_WHY_SIZE,
            "%.200s is mirrored from %.200s, so nothing can be written to it here; choose another "
            "repository",
            name.repository, mirror->urls[upstream]);
    return upstream != UINT_MAX ||
           (inner->revisions != NULL && inner->revisions->refuses(inner, path, out_why));
}

/* A model's name may have as many parts as a repository's. */
static bool explain(struct store *store, struct zt_text path, struct zt_error *out_error)
{
    struct mirror_name name;
    char text[MODEL_PATH_SIZE];
    char model[MODEL_NAME_MAX + 1];

    if (path.length < sizeof(text)) {
        snprintf(text, sizeof(text), "%.*s", (int)path.length, path.bytes);
        if (mirror_find_failure(mirror_of(store), model_path_name(text, model) ? model : text,
                                out_error))
            return true;
    }
    for (unsigned parts = 2; parts > 0; parts--)
        if (mirror_name_split(path, parts, &name) &&
            mirror_find_failure(mirror_of(store), name.repository, out_error))
            return true;
    return false;
}

struct mirror_place mirror_place_of(struct mirror *mirror, const struct mirror_target *target,
                                    const struct mirror_entry *entry)
{
    struct mirror_place place = {
        .file = mirror_entry_place(target->name.repository, target->version, entry),
        .is_pinned = target->name.commit[0] != '\0'};

    pthread_mutex_lock(&mirror->index.lock);
    place.is_verified = entry->is_verified;
    memcpy(place.proof, entry->proof, sizeof(place.proof));
    pthread_mutex_unlock(&mirror->index.lock);
    return place;
}

const struct store_revision_ops mirror_revision_ops = {.find = find_revision,
                                                       .state = state_file,
                                                       .refuses = refuses,
                                                       .was_wrong = was_wrong,
                                                       .may_be_wrong = may_be_wrong,
                                                       .explain = explain};
