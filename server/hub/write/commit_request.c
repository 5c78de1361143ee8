/* POST /api/models/{repo}/commit/{revision}: NDJSON, decoded as it arrives. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/json_reply.h"
#include "base/hex.h"
#include "base/metrics.h"
#include "base/server.h"
#include "http/exchange/authorize.h"
#include "http/exchange/base_url.h"
#include "http/exchange/client.h"
#include "hub/hub_json.h"
#include "hub/hub_problem.h"
#include "hub/hub_request.h"
#include "hub/write/commit.h"
#include "hub/write/commit_lines.h"
#include "hub/write/handlers.h"
#include "hub/write/hub_refusal.h"
#include "input/json_read.h"
#include "upload/shared/recorded.h"
#include "upload/shared/write_checks.h"

struct commit_request {
    struct job job; /* a worker removes the rest */
    struct commit commit;
    struct commit_lines lines;
    struct zt_hasher *hasher; /* for the arriving content */
    struct counted_body counted;
    unsigned header_line; /* 0: none yet */
    bool is_empty;        /* no line has arrived */
    bool was_run;
    bool is_done;
};

/* --- life --- */

static void clear(struct job *job)
{
    commit_clear(&((struct commit_request *)job)->commit);
}

static void free_all(struct job *job)
{
    free(job);
}

static void release(void *thing)
{
    struct commit_request *self = thing;

    counted_body_end(&self->counted, self->is_done);
    commit_lines_free(&self->lines);
    zt_hasher_free(self->hasher);
    self->hasher = NULL;
    self->job.run = clear;
    self->job.done = free_all;
    if (self->commit.has_place)
        workers_submit(self->commit.server->workers, &self->job);
    else {
        clear(&self->job);
        free_all(&self->job);
    }
}

static void receive(struct request *request, const struct body_piece *piece)
{
    struct commit_request *self = request->context;
    struct failure *failure = &self->commit.failure;

    if (failure->is_set || self->was_run)
        return;
    counted_body_note(&self->counted, piece->offset + piece->length);
    if (commit_lines_take(&self->lines, piece->bytes, piece->length))
        return;
    if (self->lines.is_out_of_memory)
        failure_no_memory(failure, "a line of a commit");
    if (self->lines.is_too_long)
        commit_refuse(&self->commit, self->lines.number, PROBLEM_TOO_LARGE,
                      "a line may have at most %zu bytes besides its file's content",
                      COMMIT_LINE_MAX);
}

static const struct body_receiver receiver = {.receive = receive, .on_workers = true};

static struct commit_request *new_request(struct request *request)
{
    struct commit_request *self = calloc(1, sizeof(*self));

    if (self == NULL) {
        problem_reply_no_memory(request);
        return NULL;
    }
    self->is_empty = true;
    self->commit.server = request->server;
    self->commit.request = request;
    self->commit.covers = authorize_filter(request);
    request->context = self;
    request->receiver = &receiver;
    request_hold(request, self, release);
    return self;
}

/* --- before the body --- */

static bool refuse_pull_request(struct request *request)
{
    if (!hub_switch(request, "create_pr"))
        return false;
    problem_reply(request, PROBLEM_NOT_IMPLEMENTED, "this server does not support pull requests");
    return true;
}

static bool take_content(void *context, const uint8_t *bytes, size_t length);
static bool take_line(void *context, struct zt_text line, enum commit_content content);

void hub_commit_begin(struct request *request)
{
    struct hub_target target;
    struct commit_request *self;

    if (write_refuse_read_only(request) || !hub_target_read(request, &target) ||
        hub_refuse_target(request, &target) || refuse_pull_request(request) ||
        write_refuse_coding(request) || write_refuse_absent_body(request))
        return;
    self = new_request(request);
    if (self == NULL)
        return;
    snprintf(self->commit.repo, sizeof(self->commit.repo), "%.*s", (int)target.repo.length,
             target.repo.bytes);
    hub_branch_of(&target, self->commit.branch);
    self->lines.content = take_content;
    self->lines.line = take_line;
    self->lines.context = self;
    if (!commit_lines_begin(&self->lines))
        problem_reply_no_memory(request);
    else
        (void)counted_body_refuse(request, &self->counted, self->commit.repo, NULL, UINT64_MAX);
}

/* --- the lines --- */

static bool begin_hash(struct commit_request *self)
{
    return self->hasher != NULL || zt_hasher_new(ZT_DIGEST_SHA256, &self->hasher) == ZT_OK ||
           failure_no_memory(&self->commit.failure, "hashing");
}

static bool take_content(void *context, const uint8_t *bytes, size_t length)
{
    struct commit_request *self = context;
    const uint64_t most = (uint64_t)config_number(&self->commit.server->config->upload.max_bytes);

    if (length > most || self->commit.arriving_bytes > most - length)
        return commit_refuse(&self->commit, self->lines.number, PROBLEM_TOO_LARGE,
                             "the file is larger than this server accepts");
    if (!begin_hash(self) || !commit_store(&self->commit, bytes, length))
        return false;
    zt_hasher_update(self->hasher, bytes, length);
    return true;
}

static bool refuse_line(struct commit_request *self, const char *why)
{
    return commit_refuse(&self->commit, self->lines.number, PROBLEM_INVALID_REQUEST, "%s", why);
}

static bool add_file(struct commit_request *self, const struct json_t *value,
                     enum commit_content content)
{
    struct zt_digest digest;
    struct zt_text path;
    struct zt_text encoding;

    if (json_member_text(value, "path", &path) != JSON_FOUND)
        return refuse_line(self, "a file needs a path");
    if (json_member_text(value, "encoding", &encoding) != JSON_FOUND ||
        !zt_text_is(encoding, "base64") || content == COMMIT_NO_CONTENT)
        return refuse_line(self, "a file needs content, encoded as base64");
    if (content == COMMIT_NOT_BASE64)
        return refuse_line(self, "the content of the file is not base64");
    /* An empty file sends no bytes, but its folder is needed. */
    if (!begin_hash(self) || !commit_store(&self->commit, NULL, 0))
        return false;
    zt_hasher_finish(self->hasher, &digest);
    zt_hasher_free(self->hasher);
    self->hasher = NULL;
    self->commit.begins = true;
    return commit_add_file(&self->commit, self->lines.number, path, digest.bytes);
}

/* Copies of the repository's own files have no size. */
static bool read_size(const struct json_t *value, uint64_t *out_size)
{
    const enum json_member size = json_member_whole(value, "size", out_size);

    if (size == JSON_FOUND)
        return true;
    *out_size = COMMIT_LENGTH_UNKNOWN;
    return size == JSON_ABSENT || json_member_is_null(value, "size");
}

static bool add_object(struct commit_request *self, const struct json_t *value)
{
    uint8_t sha256[32];
    struct zt_text path;
    struct zt_text text;
    uint64_t size;

    if (json_member_text(value, "path", &path) != JSON_FOUND)
        return refuse_line(self, "a file needs a path");
    if (json_member_text(value, "algo", &text) != JSON_FOUND || !lfs_is_sha256(text))
        return refuse_line(self, "the algo of an LFS file must be sha256");
    if (json_member_text(value, "oid", &text) != JSON_FOUND || !zt_hex_read_lower(text, sha256, 32))
        return refuse_line(
            self, "the oid of an LFS file must be its SHA-256, as 64 lower-case hex digits");
    if (!read_size(value, &size))
        return refuse_line(self, "the size of an LFS file must be a number of bytes");
    self->commit.begins = true;
    return commit_add_object(&self->commit, self->lines.number, path, size, sha256);
}

static void read_words(const struct json_t *value, const char *name, char *out_words, size_t size)
{
    struct zt_text text;

    if (json_member_text(value, name, &text) == JSON_FOUND)
        hub_text_copy(text, out_words, size);
}

static bool read_parent(struct commit_request *self, const struct json_t *value)
{
    struct commit *commit = &self->commit;
    struct zt_text parent;

    switch (json_member_text(value, "parentCommit", &parent)) {
    case JSON_ABSENT:
        return true;
    case JSON_OTHER:
        return json_member_is_null(value, "parentCommit") ||
               refuse_line(self, "parentCommit is not a string");
    case JSON_FOUND:
        break;
    }
    if (hub_revision_of(parent) != HUB_REVISION_COMMIT)
        return commit_refuse(commit, self->lines.number, PROBLEM_PRECONDITION_FAILED,
                             "parentCommit is not a commit of 40 hex digits");
    snprintf(commit->parent, sizeof(commit->parent), "%.*s", (int)parent.length, parent.bytes);
    commit->parent_line = self->lines.number;
    return true;
}

static bool add_header(struct commit_request *self, const struct json_t *value)
{
    struct commit *commit = &self->commit;

    if (self->header_line != 0)
        return commit_refuse(commit, self->lines.number, PROBLEM_INVALID_REQUEST,
                             "a commit may have only one header, which is on line %u",
                             self->header_line);
    self->header_line = self->lines.number;
    read_words(value, "summary", commit->title, sizeof(commit->title));
    read_words(value, "description", commit->message, sizeof(commit->message));
    return read_parent(self, value);
}

static bool add_removal(struct commit_request *self, const struct json_t *value, bool is_folder)
{
    struct zt_text path;

    if (json_member_text(value, "path", &path) != JSON_FOUND)
        return refuse_line(self, "a deletion needs a path");
    return commit_add_removal(&self->commit, self->lines.number, path, is_folder);
}

static bool read_line(struct commit_request *self, const struct json_t *object,
                      enum commit_content content)
{
    const struct json_t *value = json_member_object(object, "value");
    struct zt_text key;

    if (json_member_text(object, "key", &key) != JSON_FOUND || value == NULL)
        return refuse_line(self, "a line must be an object with a key and a value");
    if (zt_text_is(key, "file"))
        return add_file(self, value, content);
    if (content != COMMIT_NO_CONTENT)
        return refuse_line(self, "only a file may have content");
    if (zt_text_is(key, "lfsFile"))
        return add_object(self, value);
    if (zt_text_is(key, "header"))
        return add_header(self, value);
    if (zt_text_is(key, "deletedFile"))
        return add_removal(self, value, false);
    if (zt_text_is(key, "deletedFolder"))
        return add_removal(self, value, true);
    return refuse_line(self,
                       "the key is none of header, file, lfsFile, deletedFile, deletedFolder");
}

static bool take_line(void *context, struct zt_text line, enum commit_content content)
{
    struct commit_request *self = context;
    struct json_mistake mistake;
    struct json_t *object = json_object_read(line, &mistake);
    bool is_read;

    self->is_empty = false;
    if (object == NULL)
        return mistake.line == 0
                   ? refuse_line(self, "the line is not a JSON object")
                   : commit_refuse(&self->commit, self->lines.number, PROBLEM_INVALID_REQUEST,
                                   "the line is not JSON: %s", mistake.why);
    is_read = read_line(self, object, content);
    json_object_free(object);
    return is_read;
}

/* --- the end --- */

/* A commit without a header is accepted, but its body must not be empty. */
static bool finish_lines(struct commit_request *self)
{
    return commit_lines_finish(&self->lines) &&
           (!self->is_empty || commit_refuse(&self->commit, 0, PROBLEM_INVALID_REQUEST,
                                             "the body of a commit is empty"));
}

static void work(struct request *request)
{
    struct commit_request *self = request->context;

    self->is_done = !self->commit.failure.is_set && finish_lines(self) && commit_run(&self->commit);
    commit_clear(&self->commit);
    counted_body_end(&self->counted, self->is_done);
}

static enum outcome reply_done(struct request *request, const struct commit *commit)
{
    const char *base = request_base_url(request);
    const char *hex = request_print(request, "%s", commit->commit);
    const char *url = request_print(request, "%s/%s/commit/%s", base != NULL ? base : "",
                                    commit->repo, commit->commit);
    struct json *json = json_reply_new(request, false);

    if (json == NULL)
        return OUTCOME_READY;
    if (url == NULL || hex == NULL)
        return problem_reply_no_memory(request);
    json_object_begin(json);
    hub_json_flag(json, "success", true);
    json_string_member(json, "commitOid", commit->commit);
    json_string_member(json, "commitUrl", url);
    json_key_string(json, "pullRequestUrl");
    json_put_null(json);
    json_string_member(json, "hookOutput", "");
    json_object_end(json);
    json_reply_send(request, json);
    representation_field(&request->reply, "X-Repo-Commit", hex);
    recorded_reply(request, commit->recorded);
    return OUTCOME_READY;
}

enum outcome hub_commit_handle(struct request *request)
{
    struct commit_request *self = request->context;

    if (!self->was_run) {
        self->was_run = true;
        return request_work_long(request, work);
    }
    if (self->is_done)
        return reply_done(request, &self->commit);
    assert(self->commit.failure.is_set);
    if (self->commit.is_absent)
        return hub_reply_no_repo(request);
    if (self->commit.lacks_branch)
        return hub_reply_no_revision(request);
    if (self->commit.failed_path[0] != '\0')
        return hub_refuse_file(request, &self->commit.failure, self->commit.failed_line,
                               self->commit.failed_path, self->commit.done);
    hub_refuse_failure(request, &self->commit.failure, self->commit.failed_line);
    if (self->commit.has_no_place)
        representation_field(&request->reply, "X-Error-Code", "EntryNotFound");
    return OUTCOME_READY;
}
