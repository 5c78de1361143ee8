/* POST /api/models/{repo}/preupload/{revision}: decides which files to send with the commit and
 * which before it, and which files exist already. */
#include <stdio.h>
#include <stdlib.h>

#include "api/json_reply.h"
#include "base/hex.h"
#include "base/server.h"
#include "digests/hash_source.h"
#include "http/exchange/authorize.h"
#include "http/exchange/json_body.h"
#include "hub/hub_json.h"
#include "hub/hub_problem.h"
#include "hub/hub_request.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "hub/write/repo_current.h"
#include "input/json_read.h"
#include "tree/stored_file.h"
#include "upload/shared/write_checks.h"
#include "zt/digest.h"

#define FILES_MAX 1000
/* Maximum number of bytes read per request to find unchanged files. Clients wait 10 s. */
#define HASHED_MAX ((uint64_t)512 << 20)
#define OID_SIZE   65

struct preupload {
    struct hub_target target;
    bool was_run;
    struct json_t *object;
    const struct json_t *files; /* within the body */
    char (*oids)[OID_SIZE];     /* of the existing files; empty: not known */
    uint64_t hashed_bytes;
    enum hub_found found;
    bool is_absent;
    struct zt_error error;
};

static void free_all(void *thing)
{
    struct preupload *self = thing;

    json_object_free(self->object);
    free(self->oids);
}

void hub_preupload_begin(struct request *request)
{
    struct hub_target target;
    struct preupload *self;

    if (write_refuse_read_only(request) || !hub_target_read(request, &target) ||
        hub_refuse_target(request, &target) || json_body_refuse(request))
        return;
    self = request_new_context(request, sizeof(*self));
    if (self == NULL)
        return;
    self->target = target;
    request_hold(request, self, free_all);
}

/* --- existing files --- */

static bool is_regular(const struct request *request, uint64_t size)
{
    return size <= (uint64_t)config_number(&request->server->config->hub.regular_bytes);
}

/* Clients compare files that are sent with the commit by their git hashes. */
static void hash_as_git(struct zt_source *source, char out_oid[OID_SIZE])
{
    const uint64_t size = zt_source_size(source);
    struct zt_hasher *hasher;
    struct zt_digest digest;
    struct zt_error error;
    uint64_t at = 0;
    char head[32];
    int head_length;

    if (zt_hasher_new(ZT_DIGEST_SHA1, &hasher) != ZT_OK)
        return;
    head_length = snprintf(head, sizeof(head), "blob %llu", (unsigned long long)size);
    zt_hasher_update(hasher, head, (size_t)head_length + 1);
    if (hash_source(source, &at, size, hasher, &error) == ZT_OK) {
        zt_hasher_finish(hasher, &digest);
        zt_hex_write(out_oid, digest.bytes, digest.length_bytes);
    }
    zt_hasher_free(hasher);
}

static void find_regular(struct request *request, const char *path, char out_oid[OID_SIZE])
{
    struct preupload *self = request->context;
    struct stored_file *file;
    struct zt_error ignored;

    if (stored_file_open(request->server, zt_text_from(path), &file, &ignored) != ZT_OK)
        return;
    if (zt_source_size(file->source) <= HASHED_MAX - self->hashed_bytes) {
        self->hashed_bytes += zt_source_size(file->source);
        hash_as_git(file->source, out_oid);
    }
    stored_file_close(file);
}

static bool read_file(const struct json_t *files, size_t at, struct zt_text *out_path,
                      uint64_t *out_size)
{
    const struct json_t *file = json_list_object(files, at);

    return file != NULL && json_member_text(file, "path", out_path) == JSON_FOUND &&
           json_member_whole(file, "size", out_size) == JSON_FOUND;
}

static void look_at(struct request *request, const struct hub_version *version, size_t at)
{
    struct preupload *self = request->context;
    char whole[HUB_REPO_SIZE + MODEL_PATH_SIZE];
    const struct hub_file *file;
    struct zt_text path;
    uint64_t size;

    if (!read_file(self->files, at, &path, &size))
        return;
    file = repo_current_file(version, path);
    if (file == NULL || file->identity.size_bytes != size ||
        !hub_sees_file(request, self->target.repo, file))
        return;
    snprintf(whole, sizeof(whole), "%s/%s", version->folder, file->path);
    if (is_regular(request, size))
        find_regular(request, whole, self->oids[at]);
    else if (file->has_sha256)
        zt_hex_write(self->oids[at], file->sha256, sizeof(file->sha256));
}

static void work(struct request *request)
{
    struct preupload *self = request->context;
    struct hub_version *version;

    self->found = repo_current_look(request->server, self->target.repo, self->target.revision,
                                    &version, &self->error);
    if (self->found != HUB_FOUND) {
        hub_version_release(version);
        version = NULL;
    }
    for (size_t i = 0; version != NULL && i < json_list_length(self->files); i++)
        look_at(request, version, i);
    self->is_absent = repo_current_is_absent(request->server, version);
    hub_version_release(version);
}

/* --- the response --- */

/* Returns false if it has replied. */
static bool read_body(struct request *request, struct preupload *self)
{
    size_t count;

    if (json_body_refuse_received(request))
        return false;
    self->object = json_object_read(json_body_text(request), NULL);
    self->files = self->object != NULL ? json_member_list(self->object, "files") : NULL;
    count = self->files != NULL ? json_list_length(self->files) : 0;
    if (self->files == NULL || count > FILES_MAX) {
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "send {\"files\": [{\"path\", \"size\"}]}, of at most %d files", FILES_MAX);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct zt_text path;
        uint64_t size;

        if (read_file(self->files, i, &path, &size))
            continue;
        problem_reply(request, PROBLEM_INVALID_REQUEST,
                      "file %zu needs a path and a whole number as size", i);
        return false;
    }
    self->oids = calloc(count + 1, sizeof(*self->oids));
    if (self->oids == NULL)
        problem_reply_no_memory(request);
    return self->oids != NULL;
}

/* Returns true for paths that cannot be files here, above all .gitattributes. Clients leave them
 * out, with a warning. */
static bool is_ignored(const struct preupload *self, struct zt_text path)
{
    char whole[HUB_REPO_SIZE + MODEL_PATH_SIZE];
    const int length = snprintf(whole, sizeof(whole), "%.*s/%.*s", (int)self->target.repo.length,
                                self->target.repo.bytes, (int)path.length, path.bytes);

    return length < 0 || (size_t)length >= sizeof(whole) ||
           !file_path_is_writable(zt_text_from(whole));
}

static void write_file(struct request *request, struct json *json, size_t at)
{
    const struct preupload *self = request->context;
    struct zt_text path = {"", 0};
    uint64_t size = 0;

    read_file(self->files, at, &path, &size);
    json_object_begin(json);
    json_key_string(json, "path");
    json_text(json, path);
    json_string_member(json, "uploadMode", is_regular(request, size) ? "regular" : "lfs");
    hub_json_flag(json, "shouldIgnore", is_ignored(self, path));
    if (self->oids[at][0] != '\0')
        json_string_member(json, "oid", self->oids[at]);
    json_object_end(json);
}

static enum outcome reply(struct request *request, const struct preupload *self)
{
    struct json *json = json_reply_new(request, false);

    if (json == NULL)
        return OUTCOME_READY;
    json_object_begin(json);
    json_array_member(json, "files");
    for (size_t i = 0; i < json_list_length(self->files); i++)
        write_file(request, json, i);
    json_array_end(json);
    json_object_end(json);
    return json_reply_send(request, json);
}

enum outcome hub_preupload_handle(struct request *request)
{
    struct preupload *self = request->context;

    if (!self->was_run) {
        self->was_run = true;
        return read_body(request, self) ? request_work_long(request, work) : OUTCOME_READY;
    }
    if (self->found == HUB_FAILED || self->found == HUB_BUSY)
        return hub_reply_error(request, &self->error);
    if (self->found == HUB_NO_REVISION)
        return hub_reply_no_revision(request);
    if (self->is_absent)
        return hub_reply_no_repo(request);
    return reply(request, self);
}
