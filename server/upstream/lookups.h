/* Lookups in progress, so that several callers for the same name share one, and those that found
 * nothing, so that the upstream is not asked again soon. */
#ifndef UPSTREAM_LOOKUPS_H
#define UPSTREAM_LOOKUPS_H

#include "upstream/upstream.h"

#define LOOKUPS_RUNNING_MOST    32
#define LOOKUPS_REMEMBERED_MOST 1024
#define LOOKUPS_REMEMBERED_MS   60000
/* Refusals other than denials, such as answers that make no sense, often end soon. */
#define LOOKUPS_REFUSED_MS 5000
/* "commit", a repository and a revision, with blanks between them. */
#define LOOKUP_KEY_SIZE (UPSTREAM_REPOSITORY_SIZE + UPSTREAM_REVISION_SIZE + 16)

struct lookups;

struct lookup_answer {
    enum zt_status status;
    const char *rule;
    char message[256];
    int64_t pause_until_ms; /* 0: unknown */
    char commit[UPSTREAM_COMMIT_SIZE];
    int64_t modified_ns;
    struct upstream_listing *listing; /* a reference of the answer's; NULL: none */
};

/* NULL without memory. */
struct lookups *lookups_new(void);
/* When no call is in progress. Takes NULL. */
void lookups_free(struct lookups *lookups);

/* Gets the answer for a key: remembered, from a call that is in progress, or from work, which fills
 * in the answer and ends within a limit in time. Absence and denials are remembered for a minute,
 * other refusals for a few seconds.
 * out_answer has a reference to the listing. ZT_UNAVAILABLE, ZT_NO_MEMORY: no answer. */
enum zt_status lookups_run(struct lookups *lookups, const char *key,
                           void (*work)(void *context, struct lookup_answer *out_answer),
                           void *context, struct lookup_answer *out_answer, struct zt_error *error);

/* Forgets what is remembered, and does not remember what is in progress. */
void lookups_forget(struct lookups *lookups);

#endif
