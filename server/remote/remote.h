/* A client of HTTP services: one thread that runs libcurl's multi interface, and exchanges that any
 * thread may begin. It knows nothing of stores.
 *
 * Each exchange is one request that is repeated, with growing pauses, as long as repeating may help
 * and its time lasts. Nothing waits without a limit in time. Redirects are never followed: they are
 * answers, whose location the caller may ask. */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remote/reach.h"
#include "zt/status.h"

struct remote;
struct remote_exchange;
struct signer; /* sign.h */

/* Loads what could not be loaded once the process is confined. Before remote_start, which comes
 * after the sandbox as all threads do; once. ZT_IO. */
enum zt_status remote_prepare(struct zt_error *error);

/* The files that are read while it runs, for the sandbox: certificates, and what looking up names
 * needs. Calls visit with each; they need not exist. ca_file: as in the options. */
void remote_files(const char *ca_file, void (*visit)(void *context, const char *path),
                  void *context);

struct remote_options {
    const char *ca_file;  /* PEM; NULL: the system's */
    const char *proxy;    /* NULL: none */
    bool system_proxy;    /* what http_proxy, https_proxy and no_proxy say, instead */
    unsigned connections; /* at most so many requests are on their way, beside quiet ones */
};

/* A request without a byte for a second is quiet. So many do not count as on their way, so that
 * objects that hang do not hold up the others; others of the same path wait as long as it is. */
#define REMOTE_QUIET_MOST 64

/* Starts the thread. ZT_NO_MEMORY, ZT_IO, ZT_ARGUMENT (a file that cannot be read). Texts are
 * copied. */
enum zt_status remote_start(const struct remote_options *options, struct remote **out_remote,
                            struct zt_error *error);
/* Ends all exchanges, and those that are begun afterwards, with ZT_UNAVAILABLE: nobody waits any
 * more. Once or more, before remote_stop. */
void remote_interrupt(struct remote *remote);
/* The same, and ends the thread. Takes NULL. */
void remote_stop(struct remote *remote);

/* Requests on their way (quiet ones too), waiting for their turn, and how many may be on their way
 * now: halved by a 503 down to four, one more after 16 successes. */
struct remote_load {
    unsigned running;
    unsigned waiting;
    unsigned allowed;
};
void remote_load(struct remote *remote, struct remote_load *out_load);

/* --- exchanges --- */

struct remote_field {
    const char *name; /* lower case */
    const char *value;
};

#define REMOTE_FIELDS 16
/* Longer values of the answer's fields count as absent. */
#define REMOTE_VALUE_SIZE 1100
/* Addresses with a signature in them are long. */
#define REMOTE_LOCATION_SIZE 4096
#define REMOTE_COMMIT_SIZE   72

/* What is remembered of an answer's header; empty texts: absent. */
struct remote_head {
    unsigned status;
    uint64_t content_length; /* UINT64_MAX: not told */
    bool has_range;          /* a valid Content-Range: bytes first-last/size */
    uint64_t range_first;
    uint64_t range_last;
    uint64_t range_size;
    bool is_compressed; /* Content-Encoding names a compression */
    char etag[256];     /* as sent, with its quotes */
    char last_modified[64];
    char date[64];
    char version_id[REMOTE_VALUE_SIZE]; /* x-amz-version-id */
    char digest[128];                   /* x-amz-meta-ztserve-sha256 */
    char checksum[64];                  /* x-amz-checksum-sha256 */
    char checksum_type[16];             /* x-amz-checksum-type: of parts, or of the object */
    char repr_digest[256];              /* RFC 9530 */
    char location[REMOTE_LOCATION_SIZE];
    char retry_after[64];
    char axis_suggestion[32]; /* of an export of this program's server */
    uint64_t upload_offset;   /* of tus; UINT64_MAX: not told */
    /* Of a Hub. */
    char repo_commit[REMOTE_COMMIT_SIZE]; /* x-repo-commit */
    char linked_etag[256];                /* x-linked-etag: of the file to which this redirects */
    uint64_t linked_size;                 /* x-linked-size; UINT64_MAX: not told */
    char error_code[64];                  /* x-error-code */
    /* All fields Link (RFC 8288), with ", " between them. is_link_cut: one did not fit in. */
    char link[REMOTE_LOCATION_SIZE];
    bool is_link_cut;
};

enum remote_body {
    REMOTE_BODY_NONE,
    REMOTE_BODY_MEMORY,
    REMOTE_BODY_FILE /* length bytes from offset of a descriptor, read with pread */
};

/* Set by the caller before remote_begin, unchanged until done, except for what the thread fills
 * in. Texts are borrowed. */
struct remote_exchange {
    /* The request. */
    const char *method; /* "GET", "HEAD", "PUT", "POST", "DELETE" */
    const char *origin; /* "http://host:port" or "https://host", without a path */
    const char *path;   /* begins with '/'; sent as it is, so already percent-encoded */
    const char *query;  /* already encoded, names sorted, "name=" if empty; NULL: none */
    struct remote_field fields[REMOTE_FIELDS];
    unsigned field_count;
    bool has_range; /* Range: bytes=first-last */
    uint64_t range_first;
    uint64_t range_last;
    enum remote_body body;
    const void *body_bytes;
    int body_descriptor;
    uint64_t body_offset;
    uint64_t body_length;
    const char *body_sha256; /* hex, for signing; NULL: UNSIGNED-PAYLOAD, or that of "" */
    struct signer *signer;   /* NULL: not signed */
    uint64_t time_ms;        /* for waiting, all tries and pauses together; 0: 30 s */
    uint64_t try_ms;         /* for one try; 0: 15 s and 1 s a MiB */
    unsigned tries;          /* 0: 5 */
    /* More of them, for those who can wait: while the service is busy or fails itself, and while
     * nobody answers at its address. */
    unsigned tries_busy;
    unsigned tries_unreachable;
    bool obeys_retry_after; /* a busy service says how long to pause; RETRY_AFTER_MOST_MS at most */
    /* Seconds without a byte after which a try is dead; one that moves may take as long as time_ms
     * allows. 0: bodies have to come at the pace of a service nearby. */
    unsigned stall_s;
    unsigned slow_bytes_s; /* a longer body that is slower for 10 s is dead; 0: 64 KiB/s */
    int64_t not_before_ms; /* clock_ms: not sent earlier; counts as time_ms; 0: at once */
    /* Addresses that are farther inside are not connected to. REACH_ANY: no limit. Behind a proxy,
     * which looks names up itself, only addresses in the origin are judged. */
    enum reach reach_most;
    /* Called on the thread when an answer asks for fewer requests (429, 503), before the pause.
     * Short, never waits. May be NULL. */
    void (*busied)(struct remote_exchange *exchange);
    bool is_urgent; /* before those that are not, when many wait */
    /* Called on the thread with the number of bytes of the body that are on their way. May be
     * NULL. */
    void (*gave)(struct remote_exchange *exchange, size_t length);
    /* Where the answer's body goes if its status is 2xx. With into: exactly what fits; an answer
     * of another length is a failure that is tried again (short) or not (long). Without: memory of
     * at most body_most bytes, the exchange's, NUL-terminated; with 0, a short body is dropped.
     * The body of another status is kept in memory as well, at most 64 KiB of it. A range that was
     * asked for comes as 206 with a Content-Range that says so, or is clipped at the object's end
     * (without into); anything else with a 2xx is a failure. */
    uint8_t *into;
    size_t into_length;
    size_t body_most;
    /* With into and has_range: called on the thread with the number of bytes at the beginning of
     * into that have arrived. They may be used at once: they are never written again, because a
     * try that follows a broken one asks only for the rest. Short, never waits. May be NULL. */
    void (*progressed)(struct remote_exchange *exchange, size_t arrived);
    /* Takes the body of a 2xx piece by piece instead, on the thread; false: no more is wanted, the
     * exchange ends with REMOTE_FAILURE_REFUSED. tries must then be 1. May be NULL. */
    bool (*take)(struct remote_exchange *exchange, const void *bytes, size_t length);
    /* Looks at the header of an answer with a 2xx (exchange->head) before its body is taken, and
     * before its range and length are checked; false: the body is not wanted, the exchange ends
     * with ZT_UNAVAILABLE and is not repeated. On the thread. May be NULL. */
    bool (*accept)(struct remote_exchange *exchange);
    /* Called once, on the remote's thread: short, never waits. The exchange is the caller's again,
     * and may be freed. */
    void (*done)(struct remote_exchange *exchange);
    void *context;

    /* The result. status ZT_OK: an HTTP answer came whole, whatever its status; ZT_UNAVAILABLE: no
     * whole answer within the time (kind says why), or remote_stop. */
    enum zt_status status;
    enum remote_failure {
        REMOTE_FAILURE_NONE,
        REMOTE_FAILURE_CONNECT, /* no address, no connection */
        REMOTE_FAILURE_PROXY,   /* no connection to the proxy, or none through it */
        REMOTE_FAILURE_TIMEOUT,
        REMOTE_FAILURE_BROKEN, /* reset, short or malformed */
        REMOTE_FAILURE_TLS,
        REMOTE_FAILURE_CERTIFICATE, /* the other side's is not trusted */
        REMOTE_FAILURE_BUSY, /* 408, 429, 500, 502 to 504 until the end; head and answer say more */
        REMOTE_FAILURE_REFUSED,     /* accept said no */
        REMOTE_FAILURE_CREDENTIALS, /* there were none to sign with */
        REMOTE_FAILURE_STOPPED
    } failure;
    struct zt_error error; /* for people, if status is not ZT_OK */
    struct remote_head head;
    char *answer; /* the body in memory, or NULL */
    size_t answer_length;
    unsigned tried;
    size_t arrived;     /* bytes of into, if progressed is set */
    size_t begun;       /* bytes that earlier tries fetched */
    enum reach reached; /* the address of the last try; REACH_ANY: unknown, or a proxy's */
    struct remote_flight *flight; /* the thread's */
};

/* Returns true if a try failed because no server is at the address: there is no connection, or a
 * proxy ended it before any answer. So it is while a server starts again. */
bool remote_is_unreachable(enum remote_failure failure, const struct remote_exchange *exchange);

/* Clears an exchange; remote_exchange_free frees what the result holds, not the structure. */
void remote_exchange_init(struct remote_exchange *exchange);
/* Adds a field to the header of the request. Name and value must outlive the exchange. */
static inline void remote_exchange_add(struct remote_exchange *exchange, const char *name,
                                       const char *value)
{
    assert(exchange->field_count < REMOTE_FIELDS);
    exchange->fields[exchange->field_count++] = (struct remote_field){name, value};
}
void remote_exchange_free(struct remote_exchange *exchange);

/* The first byte that a try asks for. */
static inline uint64_t remote_range_first(const struct remote_exchange *exchange)
{
    return exchange->range_first + exchange->begun;
}

/* From any thread. done is always called, perhaps before this returns if out of memory. */
void remote_begin(struct remote *remote, struct remote_exchange *exchange);

/* The same, waits until done; done and context must be unset. Not on the remote's thread, not on a
 * loop. Returns exchange->status. */
enum zt_status remote_run(struct remote *remote, struct remote_exchange *exchange);

#endif
