/* One server whose repositories are mirrored: finds commits and lists of files, and fetches bytes.
 * Its kind says how: by the reading API of the Hugging Face Hub, which this program's own server
 * also has, or from a bucket (store/s3/s3_upstream.h).
 *
 * Everything that the upstream sends is untrusted: it is bounded, checked, and never passed on as
 * text. The upstream's token goes to the origin of its URL only. Requests go to that origin, and
 * by redirects of files to public addresses; to private and loopback addresses only if the upstream
 * is at such an address too, and never to link-local ones. Redirects never lead from https to
 * http. */
#ifndef UPSTREAM_UPSTREAM_H
#define UPSTREAM_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/cache.h"
#include "zt/status.h"

struct config;
struct remote;
struct upstream;
struct upstream_kind; /* kind.h */

/* A commit in hex: SHA-1 (40 digits) or SHA-256 (64). */
#define UPSTREAM_COMMIT_SIZE 65
/* "org/model", and a branch or a tag; longer ones do not exist. */
#define UPSTREAM_REPOSITORY_SIZE 256
#define UPSTREAM_REVISION_SIZE   256
/* Longer paths of files are left out of lists. */
#define UPSTREAM_PATH_SIZE 1024
/* Of an object in a bucket. */
#define UPSTREAM_ETAG_SIZE 256

/* Rules of errors (zt_error.rule) with ZT_UNAVAILABLE. Away: temporary: no connection, a time
 * limit, 429, 5xx, offline. Refused: the upstream answered, and asking again soon does not help:
 * 401, 403, an answer that makes no sense. */
#define UPSTREAM_AWAY    "upstream §away"
#define UPSTREAM_REFUSED "upstream §refused"

/* A server with the Hub's reading API; a ztserve, which states digests only some time after a
 * commit was made. */
extern const struct upstream_kind upstream_hub;
extern const struct upstream_kind upstream_ztserve;

struct upstream_options {
    const char *name; /* for people */
    const struct upstream_kind *kind;
    const char *url;             /* "http(s)://host[:port][/path]", or as the kind has it */
    const char *token;           /* visible ASCII; NULL: none */
    const struct zt_text *globs; /* of repositories; valid ones (base/glob.h) */
    size_t glob_count;           /* 0: all repositories */
    bool is_offline;             /* it is never asked */
    struct remote *remote;       /* borrowed; for this upstream only, with its proxy and its ca */
    const struct config *config; /* borrowed; NULL unless the kind needs more of it */
    /* Called when a fetch ends with ZT_STALE: the repository has changed. On any thread, never
     * waits. May be NULL. */
    void (*on_stale)(void *context, const char *repository);
    void *context;
};

/* Texts are copied. ZT_ARGUMENT: url, token or globs are not valid; ZT_NO_MEMORY. */
enum zt_status upstream_new(const struct upstream_options *options, struct upstream **out_upstream,
                            struct zt_error *error);
/* No request is begun any more. Callers that wait get ZT_UNAVAILABLE once the remote is interrupted
 * as well. */
void upstream_interrupt(struct upstream *upstream);
/* After remote_stop. Takes NULL. */
void upstream_free(struct upstream *upstream);

/* For a reload. ZT_ARGUMENT: the token is not valid, and the old one stays. */
enum zt_status upstream_set_token(struct upstream *upstream, const char *token,
                                  struct zt_error *error);
void upstream_set_offline(struct upstream *upstream, bool is_offline);

/* As configured, without a '/' at its end. */
const char *upstream_url(const struct upstream *upstream);
/* Returns true if the globs match. */
bool upstream_matches(const struct upstream *upstream, struct zt_text repository);

/* --- commits and lists --- */

enum upstream_digest { UPSTREAM_NO_DIGEST, UPSTREAM_SHA256, UPSTREAM_GIT_SHA1 };

/* Paths are relative, UTF-8, without control characters and without empty, "." and ".." parts. No
 * path is listed twice, and none is a folder of another one. */
struct upstream_file {
    const char *path; /* with a NUL */
    uint64_t size_bytes;
    enum upstream_digest digest_kind;
    uint8_t digest[32]; /* 32 or 20 bytes: of the content, or of git's blob */
    const char *etag;   /* the version, if the upstream is a bucket; otherwise empty */
};

/* All files of a commit except hidden ones (a part of the path begins with a dot, as in
 * ".gitattributes"), and those with names that are too long. Immutable. */
struct upstream_listing {
    char commit[UPSTREAM_COMMIT_SIZE];
    size_t count;
    struct upstream_file *files;   /* sorted bytewise by path */
    size_t left_out;               /* hidden files, and names that are too long */
    struct listing_memory *memory; /* listing.c's */
};

/* Returns true if a text is a commit in hex. */
bool upstream_is_commit(struct zt_text text);

/* Frees a reference. Takes NULL. Any thread. */
void upstream_listing_free(struct upstream_listing *listing);

/* Finds the commit of a revision: a branch, a tag, or a commit. Waits 9 s at most, and not
 * at all if the answer is remembered (absence and refusal for a minute) or the upstream is away.
 * ZT_NOT_FOUND: there is no such repository, or none that is visible with this token; ZT_STALE: no
 * such revision; ZT_UNAVAILABLE with a rule. *out_modified_ns: when the repository last changed; 0:
 * not stated. */
enum zt_status upstream_find_commit(struct upstream *upstream, const char *repository,
                                    struct zt_text revision, char out_commit[UPSTREAM_COMMIT_SIZE],
                                    int64_t *out_modified_ns, struct zt_error *error);

/* Lists all files of a commit. Waits two minutes at most. Fails as upstream_find_commit does;
 * ZT_STALE: no such commit any more; ZT_NO_MEMORY. */
enum zt_status upstream_list(struct upstream *upstream, const char *repository, const char *commit,
                             struct upstream_listing **out_listing, struct zt_error *error);

/* --- bytes --- */

/* One file of a commit. Texts are borrowed, and copied where they are needed longer. */
struct upstream_place {
    const char *repository;
    const char *commit;
    const char *path;
    const char *etag; /* as listed */
    uint64_t size_bytes;
    enum upstream_digest digest_kind;
    uint8_t digest[32];
};

/* Begins to fetch a range of a file, and calls fetch->done once, perhaps before it returns; reports
 * progress. ZT_OK: exactly these bytes of a file of this size and, as far as the upstream states
 * it, this digest. ZT_STALE with UPSTREAM_REFUSED: the commit has another file there, or none;
 * ZT_UNAVAILABLE with a rule. Any thread, never waits. */
void upstream_fetch(struct upstream *upstream, const struct upstream_place *place,
                    struct cache_fetch *fetch);

/* --- its state --- */

#define UPSTREAM_REASON_SIZE 256

struct upstream_report {
    bool is_offline;
    bool is_away;                      /* it has not answered since away_since_s */
    bool was_reached;                  /* since the start */
    int64_t away_since_s;              /* since 1970; 0: it is not away */
    uint64_t pause_ms;                 /* remaining time of its Retry-After */
    uint64_t requests;                 /* all tries */
    uint64_t lookups;                  /* commits and lists asked for */
    uint64_t failures;                 /* requests without an answer of use */
    uint64_t fetched_bytes;            /* of files */
    int64_t failed_s;                  /* time of the last failure; 0: none */
    char reason[UPSTREAM_REASON_SIZE]; /* of the last failure */
};

/* Never waits. Any thread. */
void upstream_report(struct upstream *upstream, struct upstream_report *out_report);

#endif
