/* An upstream, and requests to it: shared by the files of this room. */
#ifndef UPSTREAM_STATE_H
#define UPSTREAM_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "upstream/address.h"
#include "upstream/kind.h"

#define UPSTREAM_TOKEN_SIZE 1025
/* Redirects of one request that are followed. */
#define UPSTREAM_HOPS_MOST 5

struct lookups;
struct kept_addresses;

struct upstream {
    char *name;
    char *url;
    const struct upstream_kind *kind;
    void *context;                /* the kind's */
    struct upstream_address base; /* a Hub's; the target without a '/' at its end; may be empty */
    struct glob_set *globs;       /* NULL: all */
    struct remote *remote;
    void (*on_stale)(void *context, const char *repository); /* with owner; NULL: none */
    void *owner;
    struct lookups *lookups;
    struct kept_addresses *kept;
    atomic_bool is_offline;
    atomic_bool is_stopped;
    atomic_bool is_token_refused; /* logged once */
    atomic_bool is_away;
    atomic_bool was_reached;
    atomic_uint unanswered;      /* requests in a row without an answer */
    _Atomic(enum reach) reached; /* the outermost address that has answered */
    _Atomic int64_t next_try_ms;
    _Atomic int64_t away_since_s;
    _Atomic int64_t pause_until_ms;
    _Atomic uint64_t requests;
    _Atomic uint64_t lookup_count;
    _Atomic uint64_t failures;
    _Atomic uint64_t fetched_bytes;
    pthread_mutex_t lock;
    /* Under the lock. */
    char token[UPSTREAM_TOKEN_SIZE]; /* empty: none */
    struct file_fetch *asking;       /* hub_fetch.c's */
    int64_t failed_s;
    char reason[UPSTREAM_REASON_SIZE];
};

/* A request to the upstream, or to where it redirects. */
struct upstream_request {
    struct remote_exchange exchange; /* first */
    struct upstream *upstream;
    struct upstream_address address;
    char authorization[UPSTREAM_TOKEN_SIZE + 8];
    bool is_own; /* to the origin of the upstream's URL; only then with the token */
    bool has_token;
    unsigned hops;
};

/* Clears the exchange and prepares a GET of request->address. */
void upstream_request_prepare(struct upstream_request *request);
/* Forgets the token. */
void upstream_request_end(struct upstream_request *request);

/* Sets the address to the target of a redirect. ZT_UNAVAILABLE: the target is not allowed. */
enum zt_status upstream_request_redirect(struct upstream_request *request, struct zt_error *error);

/* Writes "<base>/api/models/…" and the like: plain text, and names that are encoded. */
struct target_writer {
    char *text;
    size_t length;
    bool is_too_long;
};
void target_begin(struct target_writer *writer, struct upstream_request *request);
void target_plain(struct target_writer *writer, const char *text);
void target_encoded(struct target_writer *writer, struct zt_text text, bool keep_slash);

#endif
