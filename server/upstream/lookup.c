/* Commits and lists, for all kinds of upstreams: names are checked, callers for the same name share
 * one lookup, and failures are remembered. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "upstream/listing.h"
#include "upstream/state.h"

/* Texts that may be in a request; what a client may not ask for was refused before. */
static bool is_name(struct zt_text text, size_t size)
{
    if (text.length == 0 || text.length >= size)
        return false;
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.bytes[i] <= ' ' || text.bytes[i] == 0x7F)
            return false;
    return true;
}

/* Whether a part of a path has another meaning in an address. */
static bool has_dots(const char *path)
{
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        size_t length;

        part += *part == '/';
        length = strcspn(part, "/");
        if (length == 0 || (length <= 2 && strspn(part, ".") >= length))
            return true;
    }
    return false;
}

static enum zt_status check_question(const struct upstream_question *question,
                                     struct zt_error *error)
{
    if (!is_name(zt_text_from(question->repository), UPSTREAM_REPOSITORY_SIZE) ||
        has_dots(question->repository))
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no repository can have this name");
    if (!is_name(question->revision, UPSTREAM_REVISION_SIZE) ||
        zt_text_is(question->revision, ".") || zt_text_is(question->revision, ".."))
        return zt_fail(error, ZT_STALE, NULL, ZT_NO_OFFSET, "no revision can have this name");
    return ZT_OK;
}

/* --- one lookup --- */

/* Stores the outcome of a lookup for all its callers. */
static void fill_answer(const struct upstream_question *question, enum zt_status status,
                        struct zt_error *error, struct lookup_answer *answer)
{
    answer->status = status;
    if (status == ZT_OK)
        return;
    upstream_fail(question->upstream, error);
    if (error->pause_ms > 0)
        answer->pause_until_ms = clock_ms() + error->pause_ms;
    answer->rule = error->rule;
    snprintf(answer->message, sizeof(answer->message), "%s", error->message);
}

static enum zt_status take_failure(const struct lookup_answer *answer, struct zt_error *error)
{
    const int64_t now_ms = clock_ms();

    zt_fail(error, answer->status, answer->rule, ZT_NO_OFFSET, "%s", answer->message);
    if (error != NULL && answer->pause_until_ms > now_ms)
        error->pause_ms = (uint32_t)(answer->pause_until_ms - now_ms);
    return answer->status;
}

static void work_commit(void *context, struct lookup_answer *out_answer)
{
    const struct upstream_question *question = context;
    struct zt_error error = {.status = ZT_OK};

    fill_answer(question, question->upstream->kind->find_commit(question, out_answer, &error),
                &error, out_answer);
}

static void work_list(void *context, struct lookup_answer *out_answer)
{
    const struct upstream_question *question = context;
    struct zt_error error = {.status = ZT_OK};

    fill_answer(question, question->upstream->kind->list(question, out_answer, &error), &error,
                out_answer);
}

static enum zt_status run(struct upstream_question *question, const char *name,
                          void (*work)(void *context, struct lookup_answer *out_answer),
                          struct lookup_answer *out_answer, struct zt_error *error)
{
    char key[LOOKUP_KEY_SIZE];
    enum zt_status status = check_question(question, error);

    if (status != ZT_OK)
        return status;
    atomic_fetch_add(&question->upstream->lookup_count, 1);
    snprintf(key, sizeof(key), "%s %s %.*s", name, question->repository,
             (int)question->revision.length, question->revision.bytes);
    status = lookups_run(question->upstream->lookups, key, work, question, out_answer, error);
    if (status != ZT_OK || out_answer->status == ZT_OK)
        return status;
    return take_failure(out_answer, error);
}

enum zt_status upstream_find_commit(struct upstream *upstream, const char *repository,
                                    struct zt_text revision, char out_commit[UPSTREAM_COMMIT_SIZE],
                                    int64_t *out_modified_ns, struct zt_error *error)
{
    struct upstream_question question = {upstream, repository, revision};
    struct lookup_answer answer = {.listing = NULL};
    const enum zt_status status = run(&question, "commit", work_commit, &answer, error);

    if (status != ZT_OK)
        return status;
    memcpy(out_commit, answer.commit, UPSTREAM_COMMIT_SIZE);
    *out_modified_ns = answer.modified_ns;
    return ZT_OK;
}

enum zt_status upstream_list(struct upstream *upstream, const char *repository, const char *commit,
                             struct upstream_listing **out_listing, struct zt_error *error)
{
    struct upstream_question question = {upstream, repository, zt_text_from(commit)};
    struct lookup_answer answer = {.listing = NULL};
    enum zt_status status;

    assert(upstream_is_commit(zt_text_from(commit)));
    status = run(&question, "list", work_list, &answer, error);
    if (status == ZT_OK)
        *out_listing = answer.listing;
    return status;
}
