/* Entries of trees, and descriptions of repositories. */
#include "hub/hub_json.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hub/repo_index.h"
#include "input/date.h"
#include "zt/digest.h"

#define NS_PER_S  1000000000
#define NS_PER_MS 1000000

void hub_date(int64_t time_ns, char out_text[HUB_DATE_SIZE])
{
    const time_t seconds = (time_t)(time_ns / NS_PER_S);
    const int ms = (int)(time_ns % NS_PER_S / NS_PER_MS);
    char date[ISO_DATE_SIZE];

    /* 64 bits of nanoseconds end in the year 2262. */
    if (time_ns < 0 || !iso_date_format(seconds, date))
        strcpy(out_text, "1970-01-01T00:00:00.000Z");
    else
        snprintf(out_text, HUB_DATE_SIZE, "%s.%03dZ", date, ms);
}

void hub_json_flag(struct json *json, const char *key, bool value)
{
    json_key_string(json, key);
    json_raw(json, value ? "true" : "false", value ? 4 : 5);
}

/* --- entries --- */

static void put_lfs(struct json *json, const struct hub_file *file, size_t pointer_length)
{
    assert(pointer_length > 0 && file->has_sha256);
    json_object_member(json, "lfs");
    json_string_member(json, "oid", file->etag);
    /* For clients that read it under the name in the Hub's older responses. */
    json_string_member(json, "sha256", file->etag);
    json_uint_member(json, "size", file->identity.size_bytes);
    json_uint_member(json, "pointerSize", pointer_length);
    json_object_end(json);
}

void hub_json_lfs(struct json *json, const struct hub_file *file)
{
    char oid[HUB_COMMIT_SIZE];
    size_t pointer_length;

    hub_file_oid(file, oid, &pointer_length);
    if (pointer_length > 0)
        put_lfs(json, file, pointer_length);
}

static void put_last_commit(struct json *json, const char *commit, int64_t modified_ns)
{
    char date[HUB_DATE_SIZE];

    if (commit == NULL)
        return;
    hub_date(modified_ns, date);
    json_object_member(json, "lastCommit");
    json_string_member(json, "id", commit);
    json_string_member(json, "title", HUB_COMMIT_TITLE);
    json_string_member(json, "date", date);
    json_object_end(json);
}

void hub_json_file(struct json *json, const struct hub_file *file, const char *commit)
{
    char oid[HUB_COMMIT_SIZE];
    size_t pointer_length;

    hub_file_oid(file, oid, &pointer_length);
    json_object_begin(json);
    json_string_member(json, "type", "file");
    json_string_member(json, "path", file->path);
    json_uint_member(json, "size", file->identity.size_bytes);
    json_string_member(json, "oid", oid);
    if (pointer_length > 0)
        put_lfs(json, file, pointer_length);
    else if (!file->is_git) {
        /* The oid is made up until the SHA-256 is known. A mirror must not take it for a digest. */
        json_key_string(json, "lfs");
        json_put_null(json);
    }
    put_last_commit(json, commit, file->identity.modified_ns);
    json_object_end(json);
}

/* A folder's oid may be any unique value. This one is cheap even for a folder with very many
 * files. */
static void folder_oid(const struct hub_version *version, struct zt_text path,
                       char out_oid[HUB_COMMIT_SIZE])
{
    const uint64_t words[] = {zt_xxh3(version->commit, strlen(version->commit)),
                              zt_xxh3(path.bytes, path.length)};
    uint64_t hash[2];

    zt_xxh3_128(words, sizeof(words), hash);
    snprintf(out_oid, HUB_COMMIT_SIZE, "%016" PRIx64 "%016" PRIx64 "%08" PRIx32, hash[0], hash[1],
             (uint32_t)zt_xxh3(hash, sizeof(hash)));
}

void hub_json_folder(struct json *json, const struct hub_version *version, size_t first,
                     size_t path_length, const char *commit)
{
    struct zt_text path = {NULL, path_length};
    char oid[HUB_COMMIT_SIZE];

    assert(first < version->count && version->files[first].path[path_length] == '/');
    path.bytes = version->files[first].path;
    folder_oid(version, path, oid);
    json_object_begin(json);
    json_string_member(json, "type", "directory");
    json_key_string(json, "path");
    json_text(json, path);
    json_string_member(json, "oid", oid);
    json_uint_member(json, "size", 0);
    put_last_commit(json, commit, version->modified_ns);
    json_object_end(json);
}

/* --- repositories --- */

void hub_json_repo(struct json *json, struct zt_text name, int64_t modified_ns)
{
    const char *slash = memchr(name.bytes, '/', name.length);
    char id[32];
    char date[HUB_DATE_SIZE];
    uint64_t hash[2];

    /* Looks like a database's document id. The same name always has the same id. */
    zt_xxh3_128(name.bytes, name.length, hash);
    snprintf(id, sizeof(id), "%016" PRIx64 "%08" PRIx32, hash[0], (uint32_t)hash[1]);
    hub_date(modified_ns, date);
    json_string_member(json, "_id", id);
    json_key_string(json, "id");
    json_text(json, name);
    json_key_string(json, "modelId");
    json_text(json, name);
    if (slash != NULL) {
        json_key_string(json, "author");
        json_text(json, (struct zt_text){name.bytes, (size_t)(slash - name.bytes)});
    }
    hub_json_flag(json, "private", false);
    hub_json_flag(json, "gated", false);
    hub_json_flag(json, "disabled", false);
    json_uint_member(json, "downloads", 0);
    json_uint_member(json, "likes", 0);
    json_string_member(json, "lastModified", date);
    json_string_member(json, "createdAt", date);
}

void hub_json_tags(struct json *json, unsigned tags)
{
    const char *before = "";

    json_array_member(json, "tags");
    for (unsigned i = 0; hub_tag_at(i) != NULL; i++) {
        if ((tags >> i & 1) == 0 || strcmp(before, hub_tag_at(i)) == 0)
            continue;
        before = hub_tag_at(i);
        json_put_string(json, before);
    }
    json_array_end(json);
}
