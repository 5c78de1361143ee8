/* Fetches the bytes of an answer from a remote store ahead of sending.
 *
 * The first bytes are fetched before the head is sent, so that a failure can still become a status;
 * then it is decided how to send the rest. Local bytes are pinned at once. A job fetches the others
 * part by part, and keeps more bytes in transit than it waits for. Parts are kept until they are
 * sent. For the loop's thread. */
#ifndef HTTP_WIRE_REMOTE_BODY_H
#define HTTP_WIRE_REMOTE_BODY_H

#include "http/exchange/exchange.h"

struct remote_body;

enum remote_body_fetch {
    /* All bytes are local and stay until the request ends: the answer's segments refer to them. */
    REMOTE_BODY_LOCAL,
    REMOTE_BODY_WAITS,  /* call again when the request is resumed */
    REMOTE_BODY_STREAM, /* the first part is local; send it past the library (bulk.h) */
    REMOTE_BODY_READ,   /* workers must read through the source (readahead.h) */
    REMOTE_BODY_FAILED  /* see remote_body_error of the request's body */
};

/* Fetches the first bytes of a request's answer. may_stream returns true if the answer can be sent
 * past the library part by part. */
enum remote_body_fetch remote_body_fetch(struct request *request,
                                         bool (*may_stream)(struct request *request));

/* Makes sure that parts are ready after the first one or that a job is fetching them, unless the
 * answer ends or has failed. When the job is done, bulk_continue is called if the request is being
 * streamed; else the request is resumed. */
void remote_body_continue(struct remote_body *body);

/* Returns the first part, valid until it is dropped; NULL if none is ready. */
const struct answer *remote_body_part(const struct remote_body *body);
void remote_body_drop(struct remote_body *body);

/* Returns true if the first part, or else the part dropped last, ends the answer. */
bool remote_body_is_last(const struct remote_body *body);

/* Returns true while a job runs. */
bool remote_body_is_fetching(const struct remote_body *body);

/* The client has hung up: no longer waits for bytes that are held back until their whole file is
 * checked, if it has waited for them that long. The body fails then, which is noticed as usual. */
void remote_body_give_up(struct remote_body *body, int64_t waited_ms);

/* Returns the error after which no parts follow, or NULL. */
const struct zt_error *remote_body_error(const struct remote_body *body);

#endif
