/* Requests for credentials: one after another, waited for within a time limit, and abandoned at
 * once when the program ends. */
#ifndef REMOTE_CREDENTIAL_CALL_H
#define REMOTE_CREDENTIAL_CALL_H

#include "remote/remote.h"
#include "remote/service_address.h"

/* A place from where requests are made. */
struct credential_calls;

/* remote is borrowed until credential_calls_end. NULL without memory. */
struct credential_calls *credential_calls_new(struct remote *remote);
/* A waiting call returns ZT_UNAVAILABLE, and so do all later ones. From any thread. */
void credential_calls_stop(struct credential_calls *calls);
/* Frees it, once the remote has released abandoned requests. Takes NULL. */
void credential_calls_free(struct credential_calls *calls);

struct credential_request {
    const char *what; /* the service's name in messages: "the token service" */
    const char *method;
    const struct service_address *address;
    struct remote_field fields[2];
    unsigned field_count;
    struct zt_text body;
    uint64_t time_ms;
    unsigned tries;
};

struct credential_answer {
    unsigned status;
    char *text; /* with a NUL behind it; wiped when freed */
    size_t length;
};

/* ZT_OK: a response came, with any status. ZT_UNAVAILABLE: none, with a message that names the
 * service. All texts are copied. */
enum zt_status credential_call(struct credential_calls *calls,
                               const struct credential_request *request,
                               struct credential_answer *out_answer, struct zt_error *error);
void credential_answer_free(struct credential_answer *answer);

/* What a status that is not 200 means: ZT_UNAVAILABLE if it may go away, otherwise ZT_ARGUMENT;
 * with a message that begins with `where`. */
enum zt_status credential_answer_refused(const char *where,
                                         const struct credential_request *request,
                                         const struct credential_answer *answer,
                                         struct zt_error *error);

#endif
