/* The functions that differ between kinds of upstreams. Everything else about an upstream is the
 * same for all: globs, shared and remembered lookups, whether it is away, the report. */
#ifndef UPSTREAM_KIND_H
#define UPSTREAM_KIND_H

#include "upstream/lookups.h"
#include "upstream/upstream.h"

struct remote_exchange;

/* A question about a repository, whose names can be in a request. */
struct upstream_question {
    struct upstream *upstream;
    const char *repository;
    struct zt_text revision; /* for list: a commit */
};

struct upstream_kind {
    /* Reads the address, and prepares what the kind needs. *out_context is the kind's. Fails as
     * upstream_new does. */
    enum zt_status (*open)(struct upstream *upstream, const struct upstream_options *options,
                           void **out_context, struct zt_error *error);
    /* After the last request. Gets NULL if open failed. */
    void (*close)(void *context);
    /* The work of the functions of upstream.h. The first two fill in the result, and end within the
     * limits stated there. fetch ends with upstream_end_fetch. */
    enum zt_status (*find_commit)(const struct upstream_question *question,
                                  struct lookup_answer *out_answer, struct zt_error *error);
    enum zt_status (*list)(const struct upstream_question *question,
                           struct lookup_answer *out_answer, struct zt_error *error);
    void (*fetch)(struct upstream *upstream, const struct upstream_place *place,
                  struct cache_fetch *fetch);
    bool states_digests_late; /* a list may lack digests that the upstream states when asked */
};

void *upstream_context(const struct upstream *upstream);

/* ZT_UNAVAILABLE if no request should be sent: offline, stopped, or away and tried within the last
 * second. */
enum zt_status upstream_may_ask(struct upstream *upstream, struct zt_error *error);

/* Until when a lookup that begins now may take: time_ms, or less while the upstream is away. */
int64_t upstream_lookup_end_ms(const struct upstream *upstream, int64_t time_ms);

/* Records the outcome of a request. is_own: it went to the upstream itself, so it also shows
 * whether that is away. */
void upstream_note(struct upstream *upstream, const struct remote_exchange *exchange, bool is_own);

/* Notes why something failed, for the report. Sets the error's pause if that is known and was not
 * set. */
void upstream_fail(struct upstream *upstream, struct zt_error *error);

/* Limits the time of a request for bytes. */
void upstream_limit_fetch(const struct upstream *upstream, const struct cache_fetch *fetch,
                          bool is_own, struct remote_exchange *exchange);
/* Reports the end of a fetch from a repository. error: NULL if status is ZT_OK. */
void upstream_end_fetch(struct upstream *upstream, const char *repository,
                        struct cache_fetch *fetch, enum zt_status status,
                        const struct zt_error *error);

/* Times within which lookups end. */
#define LOOKUP_COMMIT_MS 9000
#define LOOKUP_LIST_MS   120000
/* For all digests that a list lacks. */
#define LOOKUP_DIGESTS_MS 30000
/* While the upstream is away. */
#define LOOKUP_BRIEF_MS 3000

#endif
