/* An array, the youngest version first. */
#include "hub/repo_versions.h"

#include <assert.h>
#include <string.h>

size_t repo_versions_size(const struct repo_versions *versions)
{
    size_t size = 0;

    for (unsigned i = 0; i < versions->count; i++)
        size += versions->kept[i].version->count + 1;
    return size;
}

static void drop(struct repo_versions *versions, unsigned at)
{
    assert(at < versions->count);
    hub_version_release(versions->kept[at].version);
    versions->count--;
    memmove(&versions->kept[at], &versions->kept[at + 1],
            (versions->count - at) * sizeof(versions->kept[0]));
}

static bool is_same(const struct hub_version *a, const struct hub_version *b)
{
    if (a->is_kept != b->is_kept)
        return false;
    if (a->is_kept)
        return strcmp(a->folder, b->folder) == 0 && strcmp(a->commit, b->commit) == 0;
    if (a->is_stated || b->is_stated)
        return a->is_stated && b->is_stated && strcmp(a->commit, b->commit) == 0;
    return strcmp(a->provisional, b->provisional) == 0;
}

/* Returns the index of the least recently used version, except the current one; count if there is
 * none. */
static unsigned find_least(const struct repo_versions *versions)
{
    unsigned least = versions->count;

    for (unsigned i = versions->count; i-- > 0;)
        if (versions->kept[i].version != versions->now &&
            (least == versions->count || versions->kept[i].used < versions->kept[least].used))
            least = i;
    return least;
}

static void make_room(struct repo_versions *versions, size_t count)
{
    assert(versions->count <= REPO_VERSIONS_MAX);
    while (versions->count == REPO_VERSIONS_MAX ||
           repo_versions_size(versions) + count > REPO_FILES_MAX) {
        const unsigned least = find_least(versions);

        if (least == versions->count)
            return;
        drop(versions, least);
    }
}

void repo_versions_put(struct repo_versions *versions, struct hub_version *version, bool is_now)
{
    for (unsigned i = versions->count; i-- > 0;) {
        struct hub_version *kept = versions->kept[i].version;

        if (!is_same(kept, version))
            continue;
        if (kept == versions->now)
            versions->now = version;
        drop(versions, i);
    }
    if (is_now)
        versions->now = version;
    make_room(versions, version->count);
    assert(versions->count < REPO_VERSIONS_MAX);
    memmove(&versions->kept[1], &versions->kept[0], versions->count * sizeof(versions->kept[0]));
    versions->kept[0].version = version;
    versions->kept[0].used = ++versions->uses;
    versions->count++;
}

struct hub_version *repo_versions_find(struct repo_versions *versions, struct zt_text commit)
{
    for (unsigned i = 0; i < versions->count; i++) {
        if (!hub_version_is(versions->kept[i].version, commit))
            continue;
        versions->kept[i].used = ++versions->uses;
        return versions->kept[i].version;
    }
    return NULL;
}

struct hub_version *repo_versions_find_kept(struct repo_versions *versions, const char *folder,
                                            struct zt_text commit)
{
    assert(versions->count <= REPO_VERSIONS_MAX);
    for (unsigned i = 0; i < versions->count; i++) {
        struct hub_version *version = versions->kept[i].version;

        if (!version->is_kept || strcmp(version->folder, folder) != 0 ||
            (commit.length > 0 ? !hub_version_is(version, commit) : version->is_stated))
            continue;
        versions->kept[i].used = ++versions->uses;
        return version;
    }
    return NULL;
}

void repo_versions_drop(struct repo_versions *versions, const struct hub_version *version)
{
    for (unsigned i = versions->count; i-- > 0;)
        if (versions->kept[i].version == version && version != versions->now)
            drop(versions, i);
}

void repo_versions_free(struct repo_versions *versions)
{
    while (versions->count > 0)
        drop(versions, versions->count - 1);
    versions->now = NULL;
}
