/* Problem details (RFC 9457): every error is one of the codes of this table. */
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
    PROBLEM_NOT_REPRESENTABLE,
    PROBLEM_RATE_LIMITED,
    PROBLEM_HEADERS_TOO_LARGE,
    PROBLEM_CHECKSUM_MISMATCH,
    PROBLEM_CORRUPT_COMPONENT,
    PROBLEM_INTERNAL,
    PROBLEM_NOT_IMPLEMENTED,
    PROBLEM_DRAINING,
    PROBLEM_OVERLOADED,
    PROBLEM_STORE_UNAVAILABLE, /* always with Retry-After */
    PROBLEM_INSUFFICIENT_STORAGE,
    PROBLEM_COUNT
};

unsigned problem_status(enum problem problem);
const char *problem_code(enum problem problem);
const char *problem_title(enum problem problem);

/* Replaces the reply by a problem. detail is for a person and names no path of the disk. Always
 * OUTCOME_READY, so that a handler can return it. On a route of the Hub's (route.is_hub) its
 * clients find the detail where they look for it too: in the member "error" and, with a question
 * mark for each letter that a field may not hold, in X-Error-Message. */
enum outcome problem_reply(struct request *request, enum problem problem, const char *detail_format,
                           ...) __attribute__((format(printf, 3, 4)));

/* The same, with members of the caller's; those without a text are left out. */
struct problem_member {
    const char *name;
    const char *text;
};
struct problem_members {
    const struct problem_member *list;
    size_t count;
};
enum outcome problem_reply_members(struct request *request, enum problem problem,
                                   const char *detail, const struct problem_members *members);

/* The same for a failure of the core: its status decides the problem (problem_of_status), and rule,
 * object, component and offset become members if they apply. */
enum outcome problem_reply_error(struct request *request, const struct zt_error *error);

/* The same for a caller that knows a more specific problem than the table (unsupported-encoding,
 * digest-mismatch). */
enum outcome problem_reply_error_as(struct request *request, enum problem problem,
                                    const struct zt_error *error);

/* 500: out of memory. */
enum outcome problem_reply_no_memory(struct request *request);

/* The problem of a failed write to the store. */
enum problem problem_of_write(const struct zt_error *error);

/* The problem of a failure of the core. */
enum problem problem_of_status(enum zt_status status);

#endif
