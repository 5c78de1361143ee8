/* Nothing here waits: what cannot be told at once is left to publication, which checks everything
 * again. */
#include "upload/shared/write_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "upload/shared/publication.h"

/* NAME_MAX of Linux file systems. */
#define FILE_NAME_MAX 255
/* Said to a client that has as many uploads as it may: one of them may be done by then. */
#define RETRY_AFTER_S "5"

bool refuse_read_only(struct request *request)
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

bool refuse_name(struct request *request, struct zt_text name)
{
    if (model_name_is_valid(name) && name_fits(name))
        return false;
    problem_reply(request, PROBLEM_INVALID_NAME,
                  "a model's name is parts of letters, digits, '.', '_' and '-' joined by '/' (as "
                  "%%2F), and fits a "
                  "file's name");
    return true;
}

bool refuse_coding(struct request *request)
{
    const char *coding = request_header(request, "Content-Encoding");

    if (coding == NULL || strcasecmp(coding, "identity") == 0)
        return false;
    problem_reply(request, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
                  "the body is the file itself: no Content-Encoding");
    return true;
}

static void forget_waiter(struct waiter *waiter)
{
    free(waiter);
}

typedef enum catalog_answer (*catalog_question)(struct catalog *catalog, struct zt_text text,
                                                struct waiter *waiter,
                                                struct generation **out_generation);

/* Asks without waiting: nobody may wait before the body. */
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

/* What stands under the name, a data shard too: those are found by path only. False when a scan has
 * to tell first; then the preconditions are checked at publication only. */
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

struct preconditions preconditions_of_write(struct request *request)
{
    return (struct preconditions){
        .if_match = request_header(request, "If-Match"),
        .if_none_match = request_header(request, "If-None-Match"),
        .if_unmodified_since = request_header(request, "If-Unmodified-Since"),
    };
}

/* Passed over, it would have a write go on that was to be held back. A malformed If-Match holds for
 * nothing: 412. */
static bool refuse_malformed(struct request *request, const char *if_none_match)
{
    if (if_none_match == NULL || tag_list_is_valid(if_none_match))
        return false;
    problem_reply(request, PROBLEM_INVALID_REQUEST,
                  "If-None-Match is neither * nor a list of entity tags in quotes");
    return true;
}

bool refuse_preconditions(struct request *request, struct zt_text name,
                          struct preconditions *out_preconditions)
{
    struct generation *current;
    bool hold;

    *out_preconditions = preconditions_of_write(request);
    if (refuse_malformed(request, out_preconditions->if_none_match))
        return true;
    if (!find_now(request, name, &current))
        return false;
    hold = publication_preconditions_hold(out_preconditions, current);
    generation_release(current);
    if (!hold) {
        problem_reply(request, PROBLEM_PRECONDITION_FAILED,
                      "what stands under the name is not what the request asks for");
    }
    return !hold;
}

bool refuse_large(struct request *request, uint64_t length)
{
    uint64_t most = (uint64_t)request->server->config->upload.max_bytes;

    if (length == UINT64_MAX || length <= most)
        return false;
    problem_reply(request, PROBLEM_TOO_LARGE,
                  "larger than this server takes: upload.max_bytes is %llu",
                  (unsigned long long)most);
    return true;
}

void reply_crowded(struct request *request, unsigned limit, const char *key)
{
    problem_reply(request, PROBLEM_RATE_LIMITED, "this client has %u uploads going on already: %s",
                  limit, key);
    representation_field(&request->reply, "Retry-After", RETRY_AFTER_S);
}

void reply_store_failure(struct request *request, const struct zt_error *error)
{
    problem_reply_error_as(request, problem_of_write(error), error);
}
