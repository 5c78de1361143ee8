/* Problem details (RFC 9457): every error has one of the codes of this table. */
#ifndef HTTP_EXCHANGE_PROBLEM_H
#define HTTP_EXCHANGE_PROBLEM_H

#include "http/exchange/request.h"

enum problem {
    PROBLEM_INVALID_NAME,
    PROBLEM_INVALID_SLICE,
    PROBLEM_INVALID_REQUEST,
    PROBLEM_UNAUTHORIZED,
    PROBLEM_FORBIDDEN,
    PROBLEM_READ_ONLY,
    PROBLEM_NOT_FOUND,
    PROBLEM_MODEL_NOT_FOUND,
    PROBLEM_OBJECT_NOT_FOUND,
    PROBLEM_COMPONENT_NOT_FOUND,
    PROBLEM_REVISION_NOT_FOUND,
    PROBLEM_BASE_NOT_FOUND,
    PROBLEM_UPLOAD_NOT_FOUND,
    PROBLEM_METHOD_NOT_ALLOWED,
    PROBLEM_NOT_ACCEPTABLE,
    PROBLEM_TIMEOUT,
    PROBLEM_CONFLICT,
    PROBLEM_LOCKED, /* 423: another request is using the resource */
    PROBLEM_LENGTH_REQUIRED,
    PROBLEM_PRECONDITION_FAILED,
    PROBLEM_TOO_LARGE,
    PROBLEM_URI_TOO_LONG,
    PROBLEM_UNSUPPORTED_MEDIA_TYPE,
    PROBLEM_RANGE_NOT_SATISFIABLE,
    PROBLEM_EXPECTATION_FAILED,
    PROBLEM_INVALID_MODEL,
    PROBLEM_DIGEST_MISMATCH,
    PROBLEM_SIZE_MISMATCH,
    PROBLEM_UNKNOWN_DTYPE,
    PROBLEM_UNSUPPORTED_ENCODING,
    PROBLEM_SLICE_OUT_OF_RANGE,
    PROBLEM_SLICE_NOT_BYTE_ALIGNED,
    PROBLEM_SHAPE_NOT_DIVISIBLE,
    PROBLEM_RULE_UNUSED, /* a rule of the request matches no object */
    PROBLEM_NOT_REPRESENTABLE,
    PROBLEM_RATE_LIMITED,
    PROBLEM_HEADERS_TOO_LARGE,
    PROBLEM_CHECKSUM_MISMATCH,
    PROBLEM_CORRUPT_COMPONENT,
    PROBLEM_INTERNAL,
    PROBLEM_NOT_DURABLE, /* complete, but a power failure may undo it */
    PROBLEM_INCOMPLETE,  /* complete, except for the detail's exception */
    PROBLEM_NOT_IMPLEMENTED,
    PROBLEM_UPSTREAM_REFUSED, /* 502: asking the upstream again soon does not help */
    PROBLEM_DRAINING,
    PROBLEM_OVERLOADED,
    PROBLEM_STORE_UNAVAILABLE,
    PROBLEM_UPSTREAM_UNAVAILABLE,
    PROBLEM_INSUFFICIENT_STORAGE,
    PROBLEM_COUNT
};

/* What a problem looks like on the wire; each route has one form. */
enum problem_form {
    PROBLEM_FORM_PLAIN, /* problem details */
    PROBLEM_FORM_HUB,   /* with the member "error" and the field X-Error-Message */
    PROBLEM_FORM_S3     /* XML (s3api_error.h) */
};

#define PROBLEM_MEDIA_TYPE "application/problem+json"
#define XML_MEDIA_TYPE     "application/xml"

struct json;

/* The form of the problems of a request's route; plain if it has none. */
enum problem_form problem_form_of(const struct request *request);

/* A problem as it is sent. */
struct problem_body {
    unsigned status;
    const char *media_type;
    const char *text; /* lives as long as the request; NULL: out of memory */
    size_t length;
};

/* Replaces the reply by a problem whose body the caller has written. */
void problem_reply_body(struct request *request, enum problem problem,
                        const struct problem_body *body);

unsigned problem_status(enum problem problem);
const char *problem_code(enum problem problem);
/* Returns the Retry-After of all replies with this problem, in seconds, or NULL. */
const char *problem_retry_after(enum problem problem);
/* Adds Retry-After to a reply whose problem is only sometimes temporary, for example a conflict
 * with another writer. */
void problem_retry_soon(struct request *request);

/* Replaces the reply by a problem. detail is for people and must contain no path of the disk.
 * Always returns OUTCOME_READY, so that a handler can return its result. The form is the route's
 * (route.problems). Hub clients find the detail in the member "error" and in X-Error-Message, where
 * a question mark replaces each character that a field must not contain. */
enum outcome problem_reply(struct request *request, enum problem problem, const char *detail_format,
                           ...) __attribute__((format(printf, 3, 4)));

/* Does the same with additional members: names, each followed by its text, and NULL. */
enum outcome problem_reply_members(struct request *request, enum problem problem,
                                   const char *detail, const char *const *members);

/* Does the same for an error of the core: its status selects the problem (problem_of_status), and
 * rule, object, component and offset become members if they apply. */
enum outcome problem_reply_error(struct request *request, const struct zt_error *error);

/* Does the same if the caller knows a more specific problem than the table (unsupported-encoding,
 * digest-mismatch). */
enum outcome problem_reply_error_as(struct request *request, enum problem problem,
                                    const struct zt_error *error);

/* Logs a failure of the disk, of memory or of the store, and returns what the client may read of it
 * (borrowed from the error, or constant). For replies that add words of their own. */
const char *problem_explain(const struct request *request, enum problem problem,
                            const struct zt_error *error);

/* Writes the members of every problem into an object that the caller has begun and ends. The form
 * is plain or the Hub's. */
void problem_write(struct json *json, enum problem problem, const char *detail, const char *id,
                   enum problem_form form);

/* Replies with 500: out of memory. */
enum outcome problem_reply_no_memory(struct request *request);

/* Replies that the state of a path or of a model's name is unknown, because the store or its
 * upstream does not respond; the reply names which. Always returns OUTCOME_READY. */
enum outcome problem_reply_unavailable(struct request *request, struct zt_text path);

/* Returns the problem for a failed write to the store. */
enum problem problem_of_write(const struct zt_error *error);

/* Returns the problem for an error of the core, by its status alone or with its rule. */
enum problem problem_of_status(enum zt_status status);
enum problem problem_of_error(const struct zt_error *error);

#endif
