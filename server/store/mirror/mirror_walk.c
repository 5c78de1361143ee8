/* Walks folders of mirrored repositories, and of the inner store. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "store/mirror/mirror_store.h"
#include "store/store_folders.h"

struct visiting {
    struct store_folders folders;
    const char *base;
    size_t skipped; /* of paths in the repository */
    bool has_any;
};

/* Returns false to stop. */
static bool visit_entry(struct visiting *visiting, const struct mirror_version *version,
                        const struct mirror_entry *entry)
{
    const struct file_identity identity = mirror_entry_identity(version, entry);
    char path[MODEL_PATH_SIZE];
    const size_t below = strlen(visiting->base) + 1 + visiting->skipped;

    visiting->has_any = true;
    if (!mirror_name_join(visiting->base, entry->path, path))
        return true;
    assert(below <= strlen(path));
    if (!store_folders_visit(&visiting->folders, path, below))
        return false;
    if (!visiting->folders.is_deep && strchr(path + below, '/') != NULL)
        return true;
    return visiting->folders.visit(visiting->folders.context, path, &identity);
}

static bool visit_all(struct visiting *visiting, const struct mirror_version *version,
                      struct zt_text folder)
{
    char beginning[MODEL_PATH_SIZE];
    struct zt_text prefix = {beginning, folder.length + (folder.length > 0)};

    if (prefix.length >= sizeof(beginning))
        return true;
    snprintf(beginning, sizeof(beginning), "%.*s/", (int)folder.length, folder.bytes);
    visiting->skipped = prefix.length;
    for (size_t i = mirror_version_lower_bound(version, prefix); i < version->count; i++) {
        if (!zt_text_starts_with(zt_text_from(version->entries[i].path), prefix))
            break;
        if (!visit_entry(visiting, version, &version->entries[i]))
            return false;
    }
    return true;
}

/* Visits the known repositories below an owner, or all of them if it is empty. Returns false to
 * stop. */
static bool visit_repositories(struct visiting *visiting, const struct mirror_current *list,
                               size_t count, const char *owner)
{
    const size_t length = strlen(owner);

    for (size_t i = 0; i < count; i++) {
        const char *name = list[i].name;
        const char *slash;

        if (strncmp(name, owner, length) != 0 || (length > 0 && name[length] != '/'))
            continue;
        visiting->has_any = true;
        slash = strchr(name, '/');
        if (length == 0 && slash != NULL && !store_folders_visit(&visiting->folders, name, 0))
            return false;
        if (length == 0 && slash != NULL && !visiting->folders.is_deep)
            continue;
        if (!visiting->folders.visit(visiting->folders.context, name, NULL))
            return false;
        visiting->base = name;
        if (visiting->folders.is_deep &&
            !visit_all(visiting, list[i].version, (struct zt_text){"", 0}))
            return false;
    }
    return true;
}

/* Walks the inner store, and adds the known repositories. */
static enum zt_status walk_above(struct mirror *mirror, const char *folder,
                                 struct visiting *visiting, struct zt_error *error)
{
    struct store *inner = mirror->base.inner;
    struct mirror_current *list;
    size_t count;
    enum zt_status status;

    if (!mirror_index_list(&mirror->index, &list, &count))
        return zt_fail_memory(error, "a list of repositories");
    if (visit_repositories(visiting, list, count, folder)) {
        status = inner->ops->walk(inner, folder, visiting->folders.is_deep, visiting->folders.visit,
                                  visiting->folders.context, error);
        if (status == ZT_NOT_FOUND && visiting->has_any)
            status = ZT_OK;
    } else {
        status = ZT_OK;
    }
    mirror_current_free(list, count);
    return status;
}

enum zt_status mirror_walk(struct store *store, const char *folder, bool is_deep, store_visit visit,
                           void *context, struct zt_error *error)
{
    struct mirror *mirror = mirror_of(store);
    struct visiting visiting = {
        .folders = {.visit = visit, .context = context, .is_deep = is_deep}};
    struct mirror_target target = {.version = NULL};
    enum zt_status status = ZT_OK;

    if (folder[0] != '\0')
        status = mirror_find(mirror, folder, false, &target, error);
    if (status != ZT_OK)
        return status;
    if (target.version == NULL)
        return walk_above(mirror, folder, &visiting, error);
    visiting.base = target.base;
    snprintf(visiting.folders.above, sizeof(visiting.folders.above), "%s", folder);
    (void)visit_all(&visiting, target.version, target.path);
    if (!visiting.has_any && target.path.length > 0)
        status = zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "there is no such folder");
    mirror_version_release(target.version);
    return status;
}
