/* Finds the mirrored repository, the commit and the file that a path of the store names. */
#include <limits.h>
#include <string.h>

#include "store/mirror/mirror_store.h"

static bool set_target(struct mirror_target *target, const char *path)
{
    const size_t length = strlen(path);
    const size_t base = target->name.skipped > length ? length : target->name.skipped - 1;

    if (base >= sizeof(target->base))
        return false;
    memcpy(target->base, path, base);
    target->base[base] = '\0';
    target->path = target->name.skipped > length ? (struct zt_text){"", 0}
                                                 : zt_text_from(path + target->name.skipped);
    return true;
}

unsigned mirror_split_known(struct mirror *mirror, struct zt_text path,
                            struct mirror_name *out_name)
{
    unsigned upstream = UINT_MAX;

    for (unsigned parts = 2; parts > 0 && upstream == UINT_MAX; parts--)
        if (mirror_name_split(path, parts, out_name))
            upstream = mirror_known_upstream(mirror, zt_text_from(out_name->repository));
    return upstream;
}

bool mirror_is_known(struct mirror *mirror, struct zt_text path)
{
    struct mirror_name name;

    return mirror_split_known(mirror, path, &name) != UINT_MAX;
}

struct mirror_version *mirror_hold_known(struct mirror *mirror, const char *repository,
                                         const char *commit, unsigned *out_upstream)
{
    struct mirror_version *version = NULL;
    const struct mirror_repository *known;

    pthread_mutex_lock(&mirror->index.lock);
    known = mirror_index_find(&mirror->index, zt_text_from(repository));
    if (known != NULL)
        version = commit[0] == '\0' ? mirror_repository_current(known)
                                    : mirror_repository_version(known, zt_text_from(commit));
    if (version != NULL)
        mirror_version_hold(version);
    if (version != NULL && out_upstream != NULL)
        *out_upstream = known->upstream;
    pthread_mutex_unlock(&mirror->index.lock);
    return version;
}

/* Returns true if the last part of a path ends like a file's name, and not like a repository's: a
 * file that does not exist is also looked for as a folder. */
static bool ends_like_a_file(const char *path)
{
    static const char *const endings[] = {".json", ".jsonl", ".md",    ".txt",  ".py",
                                          ".yaml", ".model", ".jinja", ".index"};
    const struct zt_text text = zt_text_from(path);
    size_t name_length;
    unsigned rank;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (zt_text_ends_with(text, zt_text_from(endings[i])))
            return true;
    return model_path_split(path, &name_length, &rank);
}

/* Splits a path at the repository that it would belong to if there were one. Returns false if the
 * path is the name of an owner with known repositories. */
static bool split_unknown(struct mirror *mirror, const char *path, bool is_file,
                          struct mirror_name *out_name)
{
    const struct zt_text text = zt_text_from(path);
    unsigned parts = 1;
    bool is_owner;

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
        parts++;
    if (is_file)
        parts--;
    if (parts == 0 || mirror_name_is_snapshot(text) ||
        (!is_file && parts == 2 && ends_like_a_file(path)) ||
        !mirror_name_split(text, parts > 1 ? 2 : 1, out_name))
        return false;
    if (parts > 1)
        return true;
    pthread_mutex_lock(&mirror->index.lock);
    is_owner = mirror_index_has_owner(&mirror->index, zt_text_from(out_name->repository));
    pthread_mutex_unlock(&mirror->index.lock);
    return !is_owner;
}

bool mirror_unknown_repository(struct mirror *mirror, struct zt_text model,
                               char out_repository[UPSTREAM_REPOSITORY_SIZE])
{
    char path[MODEL_PATH_SIZE];
    struct mirror_target known;
    struct mirror_name name;

    if (model.length >= sizeof(path))
        return false;
    memcpy(path, model.bytes, model.length);
    path[model.length] = '\0';
    if (mirror_find_known(mirror, path, &known)) {
        mirror_version_release(known.version);
        return false;
    }
    if (!split_unknown(mirror, path, true, &name))
        return false;
    strcpy(out_repository, name.repository);
    return mirror_matching_upstream(mirror, zt_text_from(out_repository)) != UINT_MAX;
}

enum zt_status mirror_find(struct mirror *mirror, const char *path, bool is_file,
                           struct mirror_target *out_target, struct zt_error *error)
{
    struct mirror_found found;
    enum zt_status status;

    memset(out_target, 0, sizeof(*out_target));
    if (mirror_split_known(mirror, zt_text_from(path), &out_target->name) == UINT_MAX &&
        !split_unknown(mirror, path, is_file, &out_target->name))
        return ZT_OK;
    if (!set_target(out_target, path))
        return ZT_OK;
    status = mirror_find_revision(mirror, out_target->name.repository,
                                  zt_text_from(out_target->name.commit), &found, error);
    out_target->version = found.version;
    out_target->upstream = found.upstream;
    /* The inner store says that the file does not exist, or has it. */
    return status == ZT_NOT_FOUND ? ZT_OK : status;
}

bool mirror_find_known(struct mirror *mirror, const char *path, struct mirror_target *out_target)
{
    memset(out_target, 0, sizeof(*out_target));
    if (mirror_split_known(mirror, zt_text_from(path), &out_target->name) != UINT_MAX &&
        set_target(out_target, path))
        out_target->version = mirror_hold_known(mirror, out_target->name.repository,
                                                out_target->name.commit, &out_target->upstream);
    return out_target->version != NULL;
}
