/* The errors of the S3 API: their codes and statuses, and the XML document that carries them. Every
 * problem (problem.h) of a route of that API becomes one of them; handlers that know a more exact
 * one name it themselves. */
#ifndef HTTP_EXCHANGE_S3API_ERROR_H
#define HTTP_EXCHANGE_S3API_ERROR_H

#include "http/exchange/problem.h"

enum s3api_error {
    S3API_INVALID_REQUEST, /* also every problem without a more exact error */
    S3API_ACCESS_DENIED,
    S3API_AUTHORIZATION_HEADER_MALFORMED,
    S3API_AUTHORIZATION_QUERY_PARAMETERS_ERROR,
    S3API_BAD_DIGEST,
    S3API_BUCKET_ALREADY_EXISTS,
    S3API_BUCKET_ALREADY_OWNED_BY_YOU,
    S3API_BUCKET_NOT_EMPTY,
    S3API_CONDITIONAL_REQUEST_CONFLICT, /* another request on the key is in progress */
    S3API_ENTITY_TOO_LARGE,
    S3API_ENTITY_TOO_SMALL,
    S3API_EXPIRED_TOKEN,
    S3API_INCOMPLETE_BODY,
    S3API_INSUFFICIENT_STORAGE,
    S3API_INTERNAL_ERROR,
    S3API_INVALID_ACCESS_KEY_ID,
    S3API_INVALID_ARGUMENT,
    S3API_INVALID_BUCKET_NAME,
    S3API_INVALID_DIGEST,
    S3API_INVALID_PART,
    S3API_INVALID_PART_NUMBER,
    S3API_INVALID_PART_ORDER,
    S3API_INVALID_RANGE,
    S3API_INVALID_TOKEN,
    S3API_INVALID_URI,
    S3API_KEY_TOO_LONG,
    S3API_MALFORMED_XML,
    S3API_METADATA_TOO_LARGE,
    S3API_METHOD_NOT_ALLOWED,
    S3API_MISSING_CONTENT_LENGTH,
    S3API_NO_SUCH_BUCKET,
    S3API_NO_SUCH_KEY,
    S3API_NO_SUCH_UPLOAD,
    S3API_NO_SUCH_VERSION,
    S3API_NOT_IMPLEMENTED,
    S3API_OPERATION_ABORTED,
    S3API_PRECONDITION_FAILED,
    S3API_REQUEST_HEADER_TOO_LARGE,
    S3API_REQUEST_TIME_TOO_SKEWED,
    S3API_REQUEST_TIMEOUT,
    S3API_SERVICE_UNAVAILABLE,
    S3API_SIGNATURE_DOES_NOT_MATCH,
    S3API_SLOW_DOWN,
    S3API_XAMZ_CONTENT_SHA256_MISMATCH,
    S3API_ERROR_COUNT
};

struct xml_writer;

unsigned s3api_error_status(enum s3api_error error);
const char *s3api_error_code(enum s3api_error error);
/* Returns the error for a problem that a part of the server without knowledge of S3 has found. */
enum s3api_error s3api_error_of(enum problem problem);

/* Writes the document <Error>. resource may be NULL. */
void s3api_error_write(struct xml_writer *xml, enum s3api_error error, const char *message,
                       const char *resource, const char *request_id);

/* Replaces the reply by an error, like problem_reply. The message is for people and must contain no
 * path of the disk. */
enum outcome s3api_problem(struct request *request, enum s3api_error error,
                           const char *message_format, ...) __attribute__((format(printf, 3, 4)));

/* Does the same for a problem; problem_reply calls it on the routes of the S3 API. */
enum outcome s3api_problem_of(struct request *request, enum problem problem, const char *message);

#endif
