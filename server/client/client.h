/* HTTP requests of the commands: connections, authorization, and redirects. Built on remote.h.
 *
 * The token is sent only to the servers that the user named: after a redirect to another origin,
 * requests have no token. Redirects from https to http are refused. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "client/web_address.h"
#include "remote/remote.h"

struct client;

/* Transfers give up after this many failures in a row without progress: a restarting server needs
 * some seconds. For other failures, such as stalls, the limit is lower. */
#define CLIENT_FAILURES_MOST 10
#define CLIENT_TRIES         4

#define CLIENT_JOBS_DEFAULT 4
#define CLIENT_JOBS_MAX     64

/* Other texts than the token are borrowed. */
struct client_options {
    const char *token_file; /* NULL: the token is in ZTSERVE_TOKEN, if set */
    char *token;            /* NULL: none */
    const char *ca_file;    /* PEM; NULL: the system's */
    unsigned connections;   /* concurrent requests */
    unsigned stall_s;       /* a connection without a byte for this long is dead; not 0 */
    /* Retries while a server is busy or returns errors and, once it has responded, while it is
     * away. */
    bool is_patient;
    bool has_answered; /* the server has already responded to another client */
};

#define CLIENT_OPTIONS_DEFAULT                            \
    {                                                     \
        .connections = CLIENT_JOBS_DEFAULT, .stall_s = 30 \
    }

/* Reads the token. Returns ZT_IO, ZT_ARGUMENT or ZT_NO_MEMORY. */
enum zt_status client_options_finish(struct client_options *options, struct zt_error *error);
void client_options_free(struct client_options *options);

/* Copies the texts. Fails as remote_start does. */
enum zt_status client_open(const struct client_options *options, struct client **out_client,
                           struct zt_error *error);
/* Accepts NULL. */
void client_close(struct client *client);
/* Ends requests in progress, from a thread that may not wait. */
void client_interrupt(struct client *client);

/* The target of a request: at first the user's, later the target of redirects. */
struct client_place {
    struct web_address address;
    bool is_trusted; /* receives the token */
};

/* Parses a URL. Returns ZT_ARGUMENT if it is not one. */
enum zt_status client_place_read(const char *url, struct client_place *out_place,
                                 struct zt_error *error);
/* Makes another place on the same server: target is an encoded path, perhaps with a query. */
enum zt_status client_place_beside(const struct client_place *place, const char *target,
                                   struct client_place *out_place, struct zt_error *error);

/* Sets up an exchange for one request to a place: origin, path, token, limits. The caller adds the
 * rest. The place and the client must outlive it. A patient client retries as long as its patience
 * lasts. */
void client_prepare(struct client *client, const struct client_place *place,
                    struct remote_exchange *exchange);
/* Limits the number of tries, even for a patient client. */
void client_limit_tries(struct remote_exchange *exchange, unsigned tries);
void client_begin(struct client *client, struct remote_exchange *exchange);

/* Runs a prepared exchange and follows at most ten redirects, which change the place: any for GET
 * and HEAD, none for other methods. Returns ZT_OK for every response that is not 3xx;
 * ZT_UNAVAILABLE, with a readable reason, for example for redirects in circles. */
enum zt_status client_ask(struct client *client, struct client_place *place,
                          struct remote_exchange *exchange, struct zt_error *error);

/* Explains why an exchange has no response (its status is not ZT_OK) and how to fix that, including
 * the service's own explanation if it was busy or failed. Returns the exchange's status. */
enum zt_status client_failure(const struct remote_exchange *exchange, struct zt_error *error);

/* Returns after how many failures like this one in a row, without progress, callers that retry
 * themselves should give up. */
unsigned client_failures_most(const struct remote_exchange *exchange);
/* Returns the pause before the next try after that many failures: the one the server asks for, or a
 * growing one. seed: as for retry_pause_ms. */
uint64_t client_pause_ms(const struct remote_exchange *exchange, unsigned failures, uint64_t *seed);

/* Explains a response with an error status, from the status and its problem document (RFC 9457).
 * Returns ZT_IO, with ENOENT for 404 and 410. */
enum zt_status client_refusal(const struct remote_exchange *exchange, struct zt_error *error);

#endif
