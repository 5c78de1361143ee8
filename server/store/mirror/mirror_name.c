#include "store/mirror/mirror_name.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define SNAPSHOT_BEGINNING "models--"
#define SNAPSHOT_MIDDLE    "/snapshots/"
/* The maximum length of a part of a repository's name, as on the Hub. */
#define PART_MAX 96

static bool is_name_character(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-' || c == '.';
}

static bool is_part(struct zt_text part)
{
    if (part.length == 0 || part.length > PART_MAX || part.bytes[0] == '.' ||
        part.bytes[0] == '-' || part.bytes[part.length - 1] == '.' ||
        part.bytes[part.length - 1] == '-' || zt_text_ends_with(part, zt_text_from(".git")))
        return false;
    for (size_t i = 0; i < part.length; i++) {
        if (!is_name_character(part.bytes[i]))
            return false;
        if (i > 0 && part.bytes[i] == part.bytes[i - 1] &&
            (part.bytes[i] == '-' || part.bytes[i] == '.'))
            return false;
    }
    return true;
}

/* A Hub uses these names in other paths, so no owner has them. */
static bool is_reserved(struct zt_text owner)
{
    return zt_text_is(owner, "api") || zt_text_is(owner, "models") ||
           zt_text_is(owner, "datasets") || zt_text_is(owner, "spaces") ||
           zt_text_starts_with(owner, zt_text_from(SNAPSHOT_BEGINNING));
}

bool mirror_repository_is_valid(struct zt_text name)
{
    const char *slash = memchr(name.bytes, '/', name.length);
    const size_t owner = slash != NULL ? (size_t)(slash - name.bytes) : 0;

    if (name.length >= UPSTREAM_REPOSITORY_SIZE)
        return false;
    if (slash == NULL)
        return is_part(name) && !is_reserved(name);
    return is_part((struct zt_text){name.bytes, owner}) &&
           !is_reserved((struct zt_text){name.bytes, owner}) &&
           is_part((struct zt_text){slash + 1, name.length - owner - 1});
}

bool mirror_name_is_snapshot(struct zt_text path)
{
    return zt_text_starts_with(path, zt_text_from(SNAPSHOT_BEGINNING));
}

/* Returns the length up to the next slash, or to the end. */
static size_t part_length(struct zt_text path, size_t from)
{
    const char *slash = memchr(path.bytes + from, '/', path.length - from);

    return slash != NULL ? (size_t)(slash - path.bytes) - from : path.length - from;
}

static bool split_snapshot(struct zt_text path, struct mirror_name *out_name)
{
    const size_t begin = strlen(SNAPSHOT_BEGINNING);
    const size_t name_length = part_length(path, begin);
    const size_t middle = begin + name_length;
    const size_t commit_at = middle + strlen(SNAPSHOT_MIDDLE);
    struct zt_text commit;
    char *dashes;

    if (commit_at >= path.length || name_length >= sizeof(out_name->repository) ||
        strncmp(path.bytes + middle, SNAPSHOT_MIDDLE, strlen(SNAPSHOT_MIDDLE)) != 0)
        return false;
    commit = (struct zt_text){path.bytes + commit_at, part_length(path, commit_at)};
    if (!upstream_is_commit(commit))
        return false;
    snprintf(out_name->repository, sizeof(out_name->repository), "%.*s", (int)name_length,
             path.bytes + begin);
    snprintf(out_name->commit, sizeof(out_name->commit), "%.*s", (int)commit.length, commit.bytes);
    dashes = strstr(out_name->repository, "--");
    if (dashes != NULL) {
        *dashes = '/';
        memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    }
    out_name->skipped = commit_at + commit.length + 1;
    return mirror_repository_is_valid(zt_text_from(out_name->repository));
}

bool mirror_name_split(struct zt_text path, unsigned part_count, struct mirror_name *out_name)
{
    size_t length = 0;

    assert(part_count == 1 || part_count == 2);
    memset(out_name, 0, sizeof(*out_name));
    if (path.length == 0)
        return false;
    if (mirror_name_is_snapshot(path))
        return split_snapshot(path, out_name);
    length = part_length(path, 0);
    if (part_count == 2) {
        if (length == path.length)
            return false;
        length += 1 + part_length(path, length + 1);
    }
    if (!mirror_repository_is_valid((struct zt_text){path.bytes, length}))
        return false;
    memcpy(out_name->repository, path.bytes, length);
    out_name->skipped = length + 1;
    return true;
}

bool mirror_name_join(const char *folder, const char *file, char out_path[MODEL_PATH_SIZE])
{
    return snprintf(out_path, MODEL_PATH_SIZE, "%s/%s", folder, file) < MODEL_PATH_SIZE;
}

bool mirror_name_snapshot(const char *repository, const char *commit,
                          char out_path[MODEL_PATH_SIZE])
{
    const char *slash = strchr(repository, '/');
    const int owner = slash != NULL ? (int)(slash - repository) : 0;

    return snprintf(out_path, MODEL_PATH_SIZE, SNAPSHOT_BEGINNING "%.*s%s%s" SNAPSHOT_MIDDLE "%s",
                    owner, repository, slash != NULL ? "--" : "",
                    slash != NULL ? slash + 1 : repository, commit) < MODEL_PATH_SIZE;
}
