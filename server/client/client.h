/* What the commands ask servers with: connections, who asks, and redirects. Built on remote.h.
 *
 * A token goes to the servers that the user named and to no other: once a redirect has led to
 * another origin, requests carry none. Nor does a redirect lead from https to http. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "client/web_address.h"
#include "remote/remote.h"

struct client;

/* Those who transfer give up after so many failures in which nothing got on: a server that restarts
 * needs some seconds. Of other failures, such as stalls, fewer are enough. */
#define CLIENT_FAILURES_MOST 10
#define CLIENT_TRIES         4

struct client_options {
    const char *token;   /* NULL: none */
    const char *ca_file; /* PEM; NULL: the system's */
    unsigned connections;
    unsigned stall_s; /* without a byte, a connection is dead; not 0 */
    /* Rides out a server that is busy, or fails itself; and, once it has answered, one that is
     * away. */
    bool is_patient;
    bool has_answered; /* it has already, to another client */
};

/* Copies the texts. Fails as remote_start does. */
enum zt_status client_open(const struct client_options *options, struct client **out_client,
                           struct zt_error *error);
/* Takes NULL. */
void client_close(struct client *client);
/* Ends what is on its way, from a thread that may not wait. */
void client_interrupt(struct client *client);

/* A place that is asked: at the beginning what the user named, later where redirects led. */
struct client_place {
    struct web_address address;
    bool is_trusted; /* gets the token */
};

/* The place of a URL. ZT_ARGUMENT: it is none. */
enum zt_status client_place_read(const char *url, struct client_place *out_place,
                                 struct zt_error *error);
/* Another one of the same server: a path that is already encoded, with a query or without. */
enum zt_status client_place_beside(const struct client_place *place, const char *target,
                                   struct client_place *out_place, struct zt_error *error);

/* Sets an exchange up for one request to a place: origin, path, token, limits. The caller adds the
 * rest. The place and the client must outlive it. A patient client's is tried as often as its
 * patience lasts. */
void client_prepare(struct client *client, const struct client_place *place,
                    struct remote_exchange *exchange);
/* Only so many times, whatever the client's patience. */
void client_limit_tries(struct remote_exchange *exchange, unsigned tries);
void client_begin(struct client *client, struct remote_exchange *exchange);

/* Runs a prepared exchange and follows at most ten redirects, which change the place: any for GET
 * and HEAD, none for others. ZT_OK: an answer of a status that is none of 3xx. ZT_UNAVAILABLE, with
 * a reason for people, as a server that redirects in circles. */
enum zt_status client_ask(struct client *client, struct client_place *place,
                          struct remote_exchange *exchange, struct zt_error *error);

/* Says why an exchange has no answer (its status is not ZT_OK), what may be done about it, and what
 * a service that stayed busy or failed said of that itself. Returns the exchange's status. */
enum zt_status client_failure(const struct remote_exchange *exchange, struct zt_error *error);

/* After how many failures like this one in a row, in which nothing got on, those who repeat
 * exchanges themselves give up. */
unsigned client_failures_most(const struct remote_exchange *exchange);
/* The pause before the next try after so many: what the server asks for, or one that grows.
 * seed: as for retry_pause_ms. */
uint64_t client_pause_ms(const struct remote_exchange *exchange, unsigned failures, uint64_t *seed);

/* Says why an answer of a status that is no success is none: from the status and the problem
 * document (RFC 9457) that came with it. ZT_IO, with ENOENT for 404 and 410. */
enum zt_status client_refusal(const struct remote_exchange *exchange, struct zt_error *error);

#endif
