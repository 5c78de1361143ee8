/* Two tables: one of S3's errors, and one from our problems to them. */
#include "http/exchange/s3api_error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/xml_write.h"
#include "http/exchange/router.h"

/* Longer messages are truncated. Two names fit. */
#define MESSAGE_SIZE 2560

/* problem: what the log and the metrics count. */
static const struct {
    unsigned status;
    enum problem problem;
    const char *code;
} errors[S3API_ERROR_COUNT] = {
    [S3API_ACCESS_DENIED] = {403, PROBLEM_FORBIDDEN, "AccessDenied"},
    [S3API_AUTHORIZATION_HEADER_MALFORMED] = {400, PROBLEM_INVALID_REQUEST,
                                              "AuthorizationHeaderMalformed"},
    [S3API_AUTHORIZATION_QUERY_PARAMETERS_ERROR] = {400, PROBLEM_INVALID_REQUEST,
                                                    "AuthorizationQueryParametersError"},
    [S3API_BAD_DIGEST] = {400, PROBLEM_DIGEST_MISMATCH, "BadDigest"},
    [S3API_BUCKET_ALREADY_EXISTS] = {409, PROBLEM_CONFLICT, "BucketAlreadyExists"},
    [S3API_BUCKET_ALREADY_OWNED_BY_YOU] = {409, PROBLEM_CONFLICT, "BucketAlreadyOwnedByYou"},
    [S3API_BUCKET_NOT_EMPTY] = {409, PROBLEM_CONFLICT, "BucketNotEmpty"},
    [S3API_CONDITIONAL_REQUEST_CONFLICT] = {409, PROBLEM_CONFLICT, "ConditionalRequestConflict"},
    [S3API_ENTITY_TOO_LARGE] = {400, PROBLEM_TOO_LARGE, "EntityTooLarge"},
    [S3API_ENTITY_TOO_SMALL] = {400, PROBLEM_INVALID_REQUEST, "EntityTooSmall"},
    [S3API_EXPIRED_TOKEN] = {400, PROBLEM_UNAUTHORIZED, "ExpiredToken"},
    [S3API_INCOMPLETE_BODY] = {400, PROBLEM_SIZE_MISMATCH, "IncompleteBody"},
    [S3API_INSUFFICIENT_STORAGE] = {507, PROBLEM_INSUFFICIENT_STORAGE, "InsufficientStorage"},
    [S3API_INTERNAL_ERROR] = {500, PROBLEM_INTERNAL, "InternalError"},
    [S3API_INVALID_ACCESS_KEY_ID] = {403, PROBLEM_UNAUTHORIZED, "InvalidAccessKeyId"},
    [S3API_INVALID_ARGUMENT] = {400, PROBLEM_INVALID_REQUEST, "InvalidArgument"},
    [S3API_INVALID_BUCKET_NAME] = {400, PROBLEM_INVALID_NAME, "InvalidBucketName"},
    [S3API_INVALID_DIGEST] = {400, PROBLEM_INVALID_REQUEST, "InvalidDigest"},
    [S3API_INVALID_PART] = {400, PROBLEM_INVALID_REQUEST, "InvalidPart"},
    [S3API_INVALID_PART_NUMBER] = {416, PROBLEM_RANGE_NOT_SATISFIABLE, "InvalidPartNumber"},
    [S3API_INVALID_PART_ORDER] = {400, PROBLEM_INVALID_REQUEST, "InvalidPartOrder"},
    [S3API_INVALID_RANGE] = {416, PROBLEM_RANGE_NOT_SATISFIABLE, "InvalidRange"},
    [S3API_INVALID_REQUEST] = {400, PROBLEM_INVALID_REQUEST, "InvalidRequest"},
    [S3API_INVALID_TOKEN] = {400, PROBLEM_UNAUTHORIZED, "InvalidToken"},
    [S3API_INVALID_URI] = {400, PROBLEM_INVALID_NAME, "InvalidURI"},
    [S3API_KEY_TOO_LONG] = {400, PROBLEM_URI_TOO_LONG, "KeyTooLongError"},
    [S3API_MALFORMED_XML] = {400, PROBLEM_INVALID_REQUEST, "MalformedXML"},
    [S3API_METADATA_TOO_LARGE] = {400, PROBLEM_INVALID_REQUEST, "MetadataTooLarge"},
    [S3API_METHOD_NOT_ALLOWED] = {405, PROBLEM_METHOD_NOT_ALLOWED, "MethodNotAllowed"},
    [S3API_MISSING_CONTENT_LENGTH] = {411, PROBLEM_LENGTH_REQUIRED, "MissingContentLength"},
    [S3API_NO_SUCH_BUCKET] = {404, PROBLEM_NOT_FOUND, "NoSuchBucket"},
    [S3API_NO_SUCH_KEY] = {404, PROBLEM_NOT_FOUND, "NoSuchKey"},
    [S3API_NO_SUCH_UPLOAD] = {404, PROBLEM_UPLOAD_NOT_FOUND, "NoSuchUpload"},
    [S3API_NO_SUCH_VERSION] = {404, PROBLEM_NOT_FOUND, "NoSuchVersion"},
    [S3API_NOT_IMPLEMENTED] = {501, PROBLEM_NOT_IMPLEMENTED, "NotImplemented"},
    [S3API_OPERATION_ABORTED] = {409, PROBLEM_CONFLICT, "OperationAborted"},
    [S3API_PRECONDITION_FAILED] = {412, PROBLEM_PRECONDITION_FAILED, "PreconditionFailed"},
    [S3API_REQUEST_HEADER_TOO_LARGE] = {400, PROBLEM_HEADERS_TOO_LARGE,
                                        "RequestHeaderSectionTooLarge"},
    [S3API_REQUEST_TIME_TOO_SKEWED] = {403, PROBLEM_UNAUTHORIZED, "RequestTimeTooSkewed"},
    [S3API_REQUEST_TIMEOUT] = {400, PROBLEM_TIMEOUT, "RequestTimeout"},
    [S3API_SERVICE_UNAVAILABLE] = {503, PROBLEM_STORE_UNAVAILABLE, "ServiceUnavailable"},
    [S3API_SIGNATURE_DOES_NOT_MATCH] = {403, PROBLEM_UNAUTHORIZED, "SignatureDoesNotMatch"},
    [S3API_SLOW_DOWN] = {503, PROBLEM_OVERLOADED, "SlowDown"},
    [S3API_XAMZ_CONTENT_SHA256_MISMATCH] = {400, PROBLEM_DIGEST_MISMATCH,
                                            "XAmzContentSHA256Mismatch"},
};

unsigned s3api_error_status(enum s3api_error error)
{
    assert(error < S3API_ERROR_COUNT);
    return errors[error].status;
}

const char *s3api_error_code(enum s3api_error error)
{
    assert(error < S3API_ERROR_COUNT);
    return errors[error].code;
}

/* Problems that are not named are S3API_INVALID_REQUEST. */
static const enum s3api_error of_problem[PROBLEM_COUNT] = {
    [PROBLEM_INVALID_NAME] = S3API_INVALID_URI,
    [PROBLEM_UNAUTHORIZED] = S3API_ACCESS_DENIED,
    [PROBLEM_FORBIDDEN] = S3API_ACCESS_DENIED,
    [PROBLEM_READ_ONLY] = S3API_ACCESS_DENIED,
    [PROBLEM_NOT_FOUND] = S3API_NO_SUCH_KEY,
    [PROBLEM_MODEL_NOT_FOUND] = S3API_NO_SUCH_KEY,
    [PROBLEM_OBJECT_NOT_FOUND] = S3API_NO_SUCH_KEY,
    [PROBLEM_COMPONENT_NOT_FOUND] = S3API_NO_SUCH_KEY,
    [PROBLEM_REVISION_NOT_FOUND] = S3API_NO_SUCH_KEY,
    [PROBLEM_BASE_NOT_FOUND] = S3API_NO_SUCH_KEY,
    [PROBLEM_UPLOAD_NOT_FOUND] = S3API_NO_SUCH_UPLOAD,
    [PROBLEM_METHOD_NOT_ALLOWED] = S3API_METHOD_NOT_ALLOWED,
    [PROBLEM_TIMEOUT] = S3API_REQUEST_TIMEOUT,
    [PROBLEM_CONFLICT] = S3API_OPERATION_ABORTED,
    [PROBLEM_LOCKED] = S3API_OPERATION_ABORTED,
    [PROBLEM_LENGTH_REQUIRED] = S3API_MISSING_CONTENT_LENGTH,
    [PROBLEM_PRECONDITION_FAILED] = S3API_PRECONDITION_FAILED,
    [PROBLEM_TOO_LARGE] = S3API_ENTITY_TOO_LARGE,
    [PROBLEM_URI_TOO_LONG] = S3API_KEY_TOO_LONG,
    [PROBLEM_RANGE_NOT_SATISFIABLE] = S3API_INVALID_RANGE,
    [PROBLEM_DIGEST_MISMATCH] = S3API_BAD_DIGEST,
    [PROBLEM_SIZE_MISMATCH] = S3API_INCOMPLETE_BODY,
    [PROBLEM_RATE_LIMITED] = S3API_SLOW_DOWN,
    [PROBLEM_HEADERS_TOO_LARGE] = S3API_REQUEST_HEADER_TOO_LARGE,
    [PROBLEM_CHECKSUM_MISMATCH] = S3API_BAD_DIGEST,
    [PROBLEM_CORRUPT_COMPONENT] = S3API_INTERNAL_ERROR,
    [PROBLEM_INTERNAL] = S3API_INTERNAL_ERROR,
    [PROBLEM_NOT_DURABLE] = S3API_INTERNAL_ERROR,
    [PROBLEM_INCOMPLETE] = S3API_INTERNAL_ERROR,
    [PROBLEM_NOT_IMPLEMENTED] = S3API_NOT_IMPLEMENTED,
    [PROBLEM_DRAINING] = S3API_SERVICE_UNAVAILABLE,
    [PROBLEM_OVERLOADED] = S3API_SLOW_DOWN,
    [PROBLEM_STORE_UNAVAILABLE] = S3API_SERVICE_UNAVAILABLE,
    [PROBLEM_UPSTREAM_REFUSED] = S3API_SERVICE_UNAVAILABLE,
    [PROBLEM_UPSTREAM_UNAVAILABLE] = S3API_SERVICE_UNAVAILABLE,
    [PROBLEM_INSUFFICIENT_STORAGE] = S3API_INSUFFICIENT_STORAGE,
};

enum s3api_error s3api_error_of(enum problem problem)
{
    assert(problem < PROBLEM_COUNT);
    return of_problem[problem];
}

void s3api_error_write(struct xml_writer *xml, enum s3api_error error, const char *message,
                       const char *resource, const char *request_id)
{
    assert(error < S3API_ERROR_COUNT);
    xml_write_declaration(xml);
    xml_write_open(xml, "Error", NULL);
    xml_write_string(xml, "Code", errors[error].code);
    xml_write_string(xml, "Message", message);
    if (resource != NULL)
        xml_write_string(xml, "Resource", resource);
    xml_write_string(xml, "RequestId", request_id);
    xml_write_close(xml, "Error");
}

static enum outcome reply(struct request *request, enum s3api_error error, enum problem problem,
                          const char *message)
{
    struct zt_text path;
    const char *resource =
        router_path(request, &path) ? request_copy(request, path.bytes, path.length) : NULL;
    struct xml_writer xml = {.text = {.bytes = NULL}};
    struct problem_body body = {errors[error].status, XML_MEDIA_TYPE, NULL, 0};

    s3api_error_write(&xml, error, message, resource, request->id);
    if (!xml.text.failed) {
        body.length = xml.text.length;
        body.text = request_copy(request, (const char *)xml.text.bytes, body.length);
    }
    problem_reply_body(request, problem, &body);
    xml_writer_free(&xml);
    return OUTCOME_READY;
}

enum outcome s3api_problem(struct request *request, enum s3api_error error,
                           const char *message_format, ...)
{
    char message[MESSAGE_SIZE];
    va_list arguments;

    assert(error < S3API_ERROR_COUNT);
    va_start(arguments, message_format);
    vsnprintf(message, sizeof(message), message_format, arguments);
    va_end(arguments);
    return reply(request, error, errors[error].problem, message);
}

enum outcome s3api_problem_of(struct request *request, enum problem problem, const char *message)
{
    return reply(request, s3api_error_of(problem), problem, message);
}
