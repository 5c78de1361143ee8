/* Checks writes before a byte of the body is read. The checks never wait: anything not known at
 * once is left to publication, which checks everything again. */
#include "upload/shared/write_checks.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "access/access.h"
#include "base/server.h"
#include "base/workers.h"
#include "digests/file_hashes.h"
#include "http/exchange/authorize.h"
#include "http/exchange/problem.h"
#include "http/fields/uri.h"
#include "store/staging.h"
#include "upload/shared/current_model.h"

/* NAME_MAX of Linux file systems. */
#define FILE_NAME_MAX 255

/* --- requests --- */

static const char *store_refusal(const struct store *store)
{
    return store != NULL && store_needs_claims(store) ? store->claims->refusal(store) : NULL;
}

bool write_refuse_read_only(struct request *request)
{
    const char *why = NULL;

    if (!request->server->config->writable)
        problem_reply(request, PROBLEM_READ_ONLY, "writing is turned off on this server");
    else if ((why = store_refusal(request->server->store)) != NULL)
        problem_reply(request, PROBLEM_NOT_IMPLEMENTED, "%s", why);
    return !request->server->config->writable || why != NULL;
}

bool write_refuse_mirrored(struct request *request, struct zt_text path)
{
    struct store *store = request->server->store;
    char text[MODEL_PATH_SIZE];
    char why[STORE_WHY_SIZE];

    assert(path.length < sizeof(text));
    if (store == NULL || store->revisions == NULL)
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)path.length, path.bytes);
    if (!store->revisions->refuses(store, text, why))
        return false;
    problem_reply(request, PROBLEM_CONFLICT, "%s", why);
    return true;
}

bool write_refuse_coding(struct request *request)
{
    const char *coding = request_header(request, "Content-Encoding");

    if (coding == NULL || strcasecmp(coding, "identity") == 0)
        return false;
    problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                  "the body is the file itself: Content-Encoding is not supported");
    return true;
}

bool write_refuse_digests(struct request *request, struct digest_field *out_content,
                          struct digest_field *out_repr)
{
    const char *content = request_header(request, "Content-Digest");
    const char *repr = out_repr != NULL ? request_header(request, "Repr-Digest") : NULL;

    if ((content == NULL || digest_field_parse(content, out_content)) &&
        (repr == NULL || digest_field_parse(repr, out_repr)))
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST, "Content-Digest or Repr-Digest is malformed");
    return true;
}

bool write_refuse_absent_body(struct request *request)
{
    if (request_body_length(request) > 0 || request_header(request, "Content-Length") != NULL)
        return false;
    problem_reply(request, PROBLEM_LENGTH_REQUIRED,
                  "a body is required: send its Content-Length, or send it chunked");
    return true;
}

static void drop_waiter(struct waiter *waiter)
{
    free(waiter);
}

typedef enum catalog_answer (*catalog_question)(struct catalog *catalog, struct zt_text text,
                                                struct waiter *waiter,
                                                struct generation **out_generation);

/* Asks the catalog without waiting: no check before the body may wait. */
static enum catalog_answer ask_now(struct request *request, catalog_question question,
                                   struct zt_text text, struct generation **out_current)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    enum catalog_answer answer;

    if (waiter == NULL)
        return CATALOG_PENDING;
    waiter->wake = drop_waiter;
    answer = question(request->server->catalog, text, waiter, out_current);
    if (answer != CATALOG_PENDING)
        free(waiter);
    return answer;
}

/* Finds the current model of the name, or a data shard, which is found only by path. Returns false
 * if only a scan can tell; then only publication checks the preconditions. */
static bool find_now(struct request *request, struct zt_text name, struct generation **out_current)
{
    char path[MODEL_NAME_MAX + sizeof(".zt")];
    enum catalog_answer answer;

    assert(name.length <= MODEL_NAME_MAX);
    *out_current = NULL;
    answer = ask_now(request, catalog_find, name, out_current);
    if (answer == CATALOG_NOT_FOUND) {
        int length = snprintf(path, sizeof(path), "%.*s.zt", (int)name.length, name.bytes);

        answer = ask_now(request, catalog_find_path, (struct zt_text){path, (size_t)length},
                         out_current);
    }
    return answer != CATALOG_PENDING && answer != CATALOG_UNAVAILABLE;
}

struct preconditions write_preconditions(struct request *request)
{
    return (struct preconditions){
        .if_match = request_header(request, "If-Match"),
        .if_none_match = request_header(request, "If-None-Match"),
        .if_unmodified_since = request_header(request, "If-Unmodified-Since"),
    };
}

/* If a malformed If-None-Match were ignored, a write that the client meant to prevent would
 * succeed. A malformed If-Match needs no check: it matches no version and fails with 412. */
bool write_refuse_tags(struct request *request, const char *if_none_match)
{
    if (if_none_match == NULL || tag_list_is_valid(if_none_match))
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "If-None-Match is neither * nor a list of entity tags in quotes");
    return true;
}

bool write_file_sha256(struct server *server, const struct generation *generation,
                       uint8_t out_sha256[32])
{
    if (file_hashes_find(server->hashes, generation->path, &generation->identity, out_sha256))
        return true;
    if (generation->source != NULL)
        file_hashes_want(server->hashes, generation->path, &generation->identity);
    return false;
}

/* Returns true if the request's Repr-Digest matches the current file: an earlier, equal request was
 * successful and its response was lost (RFC 9110 section 13.2.1). */
static bool is_done_already(struct request *request, const uint8_t *sha256)
{
    const char *text = request_header(request, "Repr-Digest");
    struct digest_field stated = {0};

    return request->method == METHOD_PUT && text != NULL && digest_field_parse(text, &stated) &&
           stated.has_sha256 && memcmp(stated.sha256, sha256, sizeof(stated.sha256)) == 0;
}

/* Refuses a write whose preconditions do not hold, unless it is done already. sha256 and etag are
 * the current file's; NULL: not known. */
static void reply_unmet(struct request *request, struct published_name name, const uint8_t *sha256,
                        const char *etag)
{
    struct published published = {.replaced = true};

    if (sha256 == NULL || !is_done_already(request, sha256)) {
        problem_reply(request, PROBLEM_PRECONDITION_FAILED,
                      "the current %s does not meet the request's preconditions",
                      name.is_file ? "file" : "model");
        return;
    }
    memcpy(published.sha256, sha256, sizeof(published.sha256));
    snprintf(published.etag, sizeof(published.etag), "%s", etag);
    published_reply(request, 204, name, &published);
}

/* Finds the SHA-256 of the current model only if the request states one. */
static bool find_sha256(struct request *request, const struct generation *current,
                        uint8_t out_sha256[32])
{
    return current != NULL && request_header(request, "Repr-Digest") != NULL &&
           write_file_sha256(request->server, current, out_sha256);
}

bool write_refuse_preconditions(struct request *request, struct zt_text name,
                                struct preconditions *out_preconditions)
{
    struct generation *current;
    uint8_t sha256[32];
    bool hold;

    *out_preconditions = write_preconditions(request);
    if (write_refuse_tags(request, out_preconditions->if_none_match))
        return true;
    if (!preconditions_are_given(out_preconditions) || !find_now(request, name, &current))
        return false;
    hold = model_preconditions_hold(out_preconditions, current) || remains_were_noted();
    if (!hold && find_sha256(request, current, sha256))
        reply_unmet(request, (struct published_name){name, false}, sha256, current->etag);
    else if (!hold)
        reply_unmet(request, (struct published_name){name, false}, NULL, NULL);
    generation_release(current);
    return !hold;
}

bool write_refuse_shadowed(struct request *request, struct zt_text name)
{
    char path[MODEL_PATH_SIZE];

    /* A publication that could not remove the replaced file may be repeated. */
    if (remains_were_noted() || !model_find_known_shadowed(request->server, name, path))
        return false;
    problem_reply(request, PROBLEM_CONFLICT, MODEL_SHADOWED, path);
    return true;
}

bool write_refuse_large(struct request *request, uint64_t length)
{
    uint64_t most = (uint64_t)config_number(&request->server->config->upload.max_bytes);

    if (length == UINT64_MAX || length <= most)
        return false;
    problem_reply(request, PROBLEM_TOO_LARGE,
                  "larger than this server accepts: upload.max_bytes is %llu",
                  (unsigned long long)most);
    return true;
}

bool write_refuse_full(struct request *request, uint64_t length)
{
    struct store *store = request->server->store;

    if (staging_could_take(store->staging, length))
        return false;
    problem_reply(request, PROBLEM_INSUFFICIENT_STORAGE,
                  "there is not enough free space beyond the reserve");
    return true;
}

void write_reply_crowded(struct request *request, unsigned limit, const char *key)
{
    problem_reply(request, PROBLEM_RATE_LIMITED,
                  "this client already has %u uploads in progress: %s", limit, key);
}

/* --- files at paths --- */

bool file_path_is_writable(struct zt_text path)
{
    return store_path_is_served(path);
}

bool write_refuse_file_path(struct request *request, struct zt_text path)
{
    if (!file_path_is_writable(path)) {
        problem_reply(request, PROBLEM_INVALID_NAME,
                      "the path of a file to write must be UTF-8 without control characters, in "
                      "parts of 1 to 255 bytes that do not begin with a dot");
        return true;
    }
    if (authorize_sees_file(request, path))
        return write_refuse_mirrored(request, path);
    access_count_failure(ACCESS_MODEL);
    problem_reply(request, PROBLEM_FORBIDDEN, "this client may not use a file of this name");
    return true;
}

bool write_refuse_file_preconditions(struct request *request, const char *path,
                                     struct preconditions *out_preconditions)
{
    struct failure failure = {.is_set = false};
    struct current_file found;

    *out_preconditions = write_preconditions(request);
    if (write_refuse_tags(request, out_preconditions->if_none_match))
        return true;
    if (!preconditions_are_given(out_preconditions) || remains_were_noted() ||
        store_needs_claims(request->server->store))
        return false;
    if (!file_find_current(request->server, path, &found, &failure)) {
        failure_reply(request, &failure);
        return true;
    }
    if (file_preconditions_hold(out_preconditions, &found))
        return false;
    reply_unmet(request, (struct published_name){zt_text_from(path), true},
                found.has_sha256 ? found.sha256 : NULL, found.etag);
    return true;
}

/* --- names --- */

static struct zt_text last_part(struct zt_text name)
{
    const char *slash = memrchr(name.bytes, '/', name.length);
    const size_t before = slash != NULL ? (size_t)(slash + 1 - name.bytes) : 0;

    return (struct zt_text){name.bytes + before, name.length - before};
}

/* The last part of the name must fit as a file name. */
static bool fits_in_file(struct zt_text name)
{
    return last_part(name).length + strlen(".zt") <= FILE_NAME_MAX;
}

/* The length of a plain name without the known extensions at its end. */
static size_t bare_length(struct zt_text name)
{
    char path[MODEL_NAME_MAX + 1];
    unsigned rank;

    assert(name.length <= MODEL_NAME_MAX);
    memcpy(path, name.bytes, name.length);
    path[name.length] = '\0';
    while (model_path_split(path, &name.length, &rank))
        path[name.length] = '\0';
    return name.length;
}

/* "<stem>-<name>", and the shard's name ends with the extension that it gets once more. */
static bool is_like_shard(struct zt_text name)
{
    const struct zt_text part = last_part(name);
    const size_t length = strlen(".zt");

    return part.length > length && memchr(part.bytes, '-', part.length - length) != NULL &&
           strncasecmp(part.bytes + part.length - length, ".zt", length) == 0;
}

/* Writes the detail of both refusals, with the path of the intended model. */
static void describe(char *out_detail, size_t size, struct zt_text name, size_t length)
{
    char path[MODEL_NAME_MAX + 1];
    char model[MODEL_NAME_MAX + 1];
    struct href href;

    assert(length <= name.length && name.length <= MODEL_NAME_MAX);
    /* The name of an index with a variant does not begin with its model's name. */
    snprintf(path, sizeof(path), "%.*s", (int)name.length, name.bytes);
    href_init(&href);
    if (model_path_is_index(name) && model_path_name(path, model))
        href_model(&href, zt_text_from(model));
    else
        href_model(&href, (struct zt_text){name.bytes, length});
    snprintf(out_detail, size,
             "leave out the extension %.*s, which the server adds to the name: the URL is %s",
             (int)(name.length - length), name.bytes + length,
             href.failed ? "the one without it" : href.text);
    href_free(&href);
}

bool written_name_refuse(struct request *request, struct zt_text name, bool may_be_shard)
{
    /* Three times the name, escaped, and the sentence. */
    char detail[4 * MODEL_NAME_MAX + 256];
    size_t length;

    if (!model_name_is_plain(name) || !fits_in_file(name)) {
        problem_reply(
            request, PROBLEM_INVALID_NAME,
            "the name of a model to write must consist of parts of letters, digits, '.', '_' and "
            "'-' that begin with a letter or digit, joined by '/', and must fit in a file name");
        return true;
    }
    length = bare_length(name);
    if (length == name.length || (may_be_shard && is_like_shard(name))) {
        char path[MODEL_PATH_SIZE];
        const int path_length =
            snprintf(path, sizeof(path), "%.*s.zt", (int)name.length, name.bytes);

        return write_refuse_mirrored(request, (struct zt_text){path, (size_t)path_length});
    }
    describe(detail, sizeof(detail), name, length);
    problem_reply(request, PROBLEM_INVALID_NAME, "%s", detail);
    return true;
}

bool written_name_is_doubled(const char *name, const char *extension, struct failure *failure)
{
    const struct zt_text text = zt_text_from(name);
    const size_t length = strlen(extension);
    char detail[4 * MODEL_NAME_MAX + 256];

    if (text.length <= length || strcasecmp(name + text.length - length, extension) != 0)
        return false;
    describe(detail, sizeof(detail), text, bare_length(text));
    failure_refuse(failure, PROBLEM_INVALID_NAME, "%s", detail);
    return true;
}
