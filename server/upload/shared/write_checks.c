/* Nothing here waits: what is not known at once is left to publication, which checks everything
 * again. */
#include "upload/shared/write_checks.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "upload/shared/publication.h"

/* NAME_MAX of Linux file systems. */
#define FILE_NAME_MAX 255
/* One of the client's other uploads may be done by then. */
#define RETRY_AFTER_S "5"

bool write_refuse_read_only(struct request *request)
{
    if (request->server->config->writable)
        return false;
    problem_reply(request, PROBLEM_READ_ONLY, "writing is turned off on this server");
    return true;
}

/* The last part becomes the name of a file. */
static bool name_fits(struct zt_text name)
{
    const char *slash = memrchr(name.bytes, '/', name.length);
    size_t last = slash != NULL ? (size_t)(name.bytes + name.length - slash - 1) : name.length;

    return last + strlen(".zt") <= FILE_NAME_MAX;
}

bool write_refuse_name(struct request *request, struct zt_text name)
{
    if (model_name_is_valid(name) && name_fits(name))
        return false;
    problem_reply(request, PROBLEM_INVALID_NAME,
                  "a model's name is parts of letters, digits, '.', '_' and '-' joined by '/' (as "
                  "%%2F), and fits in a file's name");
    return true;
}

bool write_refuse_coding(struct request *request)
{
    const char *coding = request_header(request, "Content-Encoding");

    if (coding == NULL || strcasecmp(coding, "identity") == 0)
        return false;
    problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                  "the body is the file itself: no Content-Encoding");
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

static void forget_waiter(struct waiter *waiter)
{
    free(waiter);
}

typedef enum catalog_answer (*catalog_question)(struct catalog *catalog, struct zt_text text,
                                                struct waiter *waiter,
                                                struct generation **out_generation);

/* Asks without waiting, which nothing before the body may do. */
static enum catalog_answer ask_now(struct request *request, catalog_question question,
                                   struct zt_text text, struct generation **out_current)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    enum catalog_answer answer;

    if (waiter == NULL)
        return CATALOG_PENDING;
    waiter->wake = forget_waiter;
    answer = question(request->server->catalog, text, waiter, out_current);
    if (answer != CATALOG_PENDING)
        free(waiter);
    return answer;
}

/* What stands under the name; a data shard, too, which is found by path only. False if only a scan
 * can tell; then the preconditions are checked at publication only. */
static bool find_now(struct request *request, struct zt_text name, struct generation **out_current)
{
    char path[MODEL_NAME_MAX + sizeof(".zt")];
    enum catalog_answer answer;

    *out_current = NULL;
    answer = ask_now(request, catalog_find, name, out_current);
    if (answer == CATALOG_NOT_FOUND) {
        int length = snprintf(path, sizeof(path), "%.*s.zt", (int)name.length, name.bytes);

        answer = ask_now(request, catalog_find_path, (struct zt_text){path, (size_t)length},
                         out_current);
    }
    return answer != CATALOG_PENDING;
}

struct preconditions write_preconditions(struct request *request)
{
    return (struct preconditions){
        .if_match = request_header(request, "If-Match"),
        .if_none_match = request_header(request, "If-None-Match"),
        .if_unmodified_since = request_header(request, "If-Unmodified-Since"),
    };
}

/* Ignored, it would let through a write that the client meant to prevent. A malformed If-Match
 * needs no such care: it matches nothing, which is 412. */
static bool refuse_malformed(struct request *request, const char *if_none_match)
{
    if (if_none_match == NULL || tag_list_is_valid(if_none_match))
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "If-None-Match is neither * nor a list of entity tags in quotes");
    return true;
}

bool write_refuse_preconditions(struct request *request, struct zt_text name,
                                struct preconditions *out_preconditions)
{
    struct generation *current;
    bool hold;

    *out_preconditions = write_preconditions(request);
    if (refuse_malformed(request, out_preconditions->if_none_match))
        return true;
    if (!find_now(request, name, &current))
        return false;
    hold = model_preconditions_hold(out_preconditions, current);
    generation_release(current);
    if (!hold) {
        problem_reply(request, PROBLEM_PRECONDITION_FAILED,
                      "what stands under the name is not what the request asks for");
    }
    return !hold;
}

bool write_refuse_large(struct request *request, uint64_t length)
{
    uint64_t most = (uint64_t)request->server->config->upload.max_bytes;

    if (length == UINT64_MAX || length <= most)
        return false;
    problem_reply(request, PROBLEM_TOO_LARGE,
                  "larger than this server takes: upload.max_bytes is %llu",
                  (unsigned long long)most);
    return true;
}

void write_reply_crowded(struct request *request, unsigned limit, const char *key)
{
    problem_reply(request, PROBLEM_RATE_LIMITED, "this client has %u uploads going on already: %s",
                  limit, key);
    representation_field(&request->reply, "Retry-After", RETRY_AFTER_S);
}

void *write_context(struct request *request, size_t size)
{
    void *context = request_allocate(request, size);

    if (context == NULL)
        problem_reply(request, PROBLEM_INTERNAL, "the server is out of memory");
    else
        request->context = memset(context, 0, size);
    return context;
}
