/* Names of repositories, branches and tags; the identity of a commit. */
#include <assert.h>
#include <stdio.h>

#include "base/hex.h"
#include "store/versions/commit_id.h"
#include "store/versions/history_inside.h"
#include "zt/digest.h"
#include "zt/join.h"
#include "zt/utf8.h"

#define CONFIG_FILE "config.json"
#define LOCK_SUFFIX ".lock"

/* --- repositories --- */

static bool has_config(const struct history *history, struct zt_text folder)
{
    char path[MODEL_PATH_SIZE];

    return (size_t)snprintf(path, sizeof(path), "%.*s/" CONFIG_FILE, (int)folder.length,
                            folder.bytes) < sizeof(path) &&
           history_has_path(history, path, false);
}

static void write_repo(struct zt_text name, bool is_root_model, struct history_repo *out_repo)
{
    const size_t length = name.length <= MODEL_NAME_MAX ? name.length : MODEL_NAME_MAX;

    *out_repo = (struct history_repo){.is_root_model = is_root_model};
    memcpy(out_repo->name, name.bytes, length);
}

/* Returns the part up to the slash with this number, counted from 1; the whole text if it has
 * fewer. */
static struct zt_text up_to_slash(struct zt_text path, unsigned number)
{
    assert(number > 0);
    for (size_t i = 0; i < path.length; i++)
        if (path.bytes[i] == '/' && --number == 0)
            return (struct zt_text){path.bytes, i};
    return path;
}

/* Returns false for a name without folders. */
static bool folder_of(const struct history *history, struct zt_text path, struct zt_text *out_name)
{
    const struct zt_text first = up_to_slash(path, 1);
    const struct zt_text second = up_to_slash(path, 2);

    if (first.length == path.length)
        return false;
    *out_name = second.length == path.length || has_config(history, first) ? first : second;
    return true;
}

static struct zt_text without_part(struct zt_text name)
{
    uint32_t number;
    uint32_t count;
    size_t stem;

    if (zt_part_name_split(name, &stem, &number, &count) && stem > 0)
        name.length = stem;
    return name;
}

void history_repo_of_path(struct history *history, const char *path, struct history_repo *out_repo)
{
    struct zt_text name = zt_text_from(path);
    char model[MODEL_NAME_MAX + 1];

    if (folder_of(history, name, &name)) {
        write_repo(name, false, out_repo);
        return;
    }
    if (model_path_name(path, model))
        name = zt_text_from(model);
    write_repo(without_part(name), true, out_repo);
}

void history_repo_of_model(struct history *history, struct zt_text model,
                           struct history_repo *out_repo)
{
    struct zt_text name;

    if (folder_of(history, model, &name))
        write_repo(name, false, out_repo);
    else
        write_repo(without_part(model), true, out_repo);
}

bool history_path_split(struct zt_text path, struct history_path *out_path)
{
    const size_t digits = HISTORY_COMMIT_SIZE - 1;

    for (size_t at = 1; at + digits < path.length; at++) {
        const size_t end = at + 1 + digits;
        const struct zt_text commit = {path.bytes + at + 1, digits};

        if (path.bytes[at] != '@' || !zt_hex_is_lower(commit, digits) ||
            (end < path.length && path.bytes[end] != '/'))
            continue;
        out_path->repo = (struct zt_text){path.bytes, at};
        memcpy(out_path->commit, commit.bytes, digits);
        out_path->commit[digits] = '\0';
        out_path->rest = end < path.length
                             ? (struct zt_text){path.bytes + end + 1, path.length - end - 1}
                             : (struct zt_text){path.bytes + end, 0};
        return true;
    }
    return false;
}

enum zt_status history_repo_key(const struct history_repo *repo, char out_key[HISTORY_KEY_SIZE],
                                struct zt_error *error)
{
    char text[sizeof(repo->name) + 1];
    struct zt_digest digest;
    const int length =
        snprintf(text, sizeof(text), "%c%s", repo->is_root_model ? 'm' : 'f', repo->name);

    assert(length > 0 && (size_t)length < sizeof(text));
    if (zt_digest_of(ZT_DIGEST_SHA256, text, (size_t)length, &digest) != ZT_OK)
        return zt_fail_memory(error, "the name of a repository");
    assert(digest.length_bytes == HISTORY_SHA256_BYTES);
    zt_hex_write(out_key, digest.bytes, digest.length_bytes);
    return ZT_OK;
}

/* --- branches and tags --- */

static bool is_forbidden(char c)
{
    return (unsigned char)c <= ' ' || (unsigned char)c == 0x7F || strchr("~^:?*[\\", c) != NULL;
}

/* One part between slashes. */
static bool is_part(struct zt_text part)
{
    return part.length > 0 && part.bytes[0] != '.' &&
           !zt_text_ends_with(part, zt_text_from(LOCK_SUFFIX));
}

static bool has_pair(struct zt_text name, char first, char second)
{
    for (size_t i = 1; i < name.length; i++)
        if (name.bytes[i - 1] == first && name.bytes[i] == second)
            return true;
    return false;
}

/* "refs/…" and "HEAD" would not be found under their names. */
bool history_ref_is_valid(struct zt_text name)
{
    size_t start = 0;

    if (name.length == 0 || name.length >= HISTORY_REF_SIZE || name.bytes[0] == '-' ||
        name.bytes[name.length - 1] == '.' || zt_text_is(name, "@") || zt_text_is(name, "HEAD") ||
        zt_text_starts_with(name, zt_text_from("refs/")) || has_pair(name, '.', '.') ||
        has_pair(name, '@', '{') || zt_hex_is_lower(name, HISTORY_COMMIT_SIZE - 1) ||
        !zt_utf8_valid(name.bytes, name.length))
        return false;
    for (size_t i = 0; i < name.length; i++)
        if (is_forbidden(name.bytes[i]))
            return false;
    for (size_t i = 0; i <= name.length; i++)
        if (i == name.length || name.bytes[i] == '/') {
            if (!is_part((struct zt_text){name.bytes + start, i - start}))
                return false;
            start = i + 1;
        }
    return true;
}

/* --- commits --- */

enum zt_status history_commit_id(const struct history_file *files, size_t count,
                                 char out_id[HISTORY_COMMIT_SIZE], struct zt_error *error)
{
    struct zt_hasher *hasher;

    if (zt_hasher_new(ZT_DIGEST_SHA1, &hasher) != ZT_OK)
        return zt_fail_memory(error, "a commit");
    for (size_t i = 0; i < count; i++) {
        char text[2 * HISTORY_SHA256_BYTES + 1];

        zt_hex_write(text, files[i].sha256, sizeof(files[i].sha256));
        commit_id_add(hasher, files[i].path, text);
    }
    commit_id_finish(hasher, out_id);
    return ZT_OK;
}
