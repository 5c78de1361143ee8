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

/* Without a default: the compiler finds a problem that is missing. */
enum s3api_error s3api_error_of(enum problem problem)
{
    switch (problem) {
    case PROBLEM_INVALID_NAME:
        return S3API_INVALID_URI;
    case PROBLEM_UNAUTHORIZED:
    case PROBLEM_FORBIDDEN:
    case PROBLEM_READ_ONLY:
        return S3API_ACCESS_DENIED;
    case PROBLEM_NOT_FOUND:
    case PROBLEM_MODEL_NOT_FOUND:
    case PROBLEM_OBJECT_NOT_FOUND:
    case PROBLEM_COMPONENT_NOT_FOUND:
        return S3API_NO_SUCH_KEY;
    case PROBLEM_UPLOAD_NOT_FOUND:
        return S3API_NO_SUCH_UPLOAD;
    case PROBLEM_METHOD_NOT_ALLOWED:
        return S3API_METHOD_NOT_ALLOWED;
    case PROBLEM_TIMEOUT:
        return S3API_REQUEST_TIMEOUT;
    case PROBLEM_CONFLICT:
    case PROBLEM_LOCKED:
        return S3API_OPERATION_ABORTED;
    case PROBLEM_LENGTH_REQUIRED:
        return S3API_MISSING_CONTENT_LENGTH;
    case PROBLEM_PRECONDITION_FAILED:
        return S3API_PRECONDITION_FAILED;
    case PROBLEM_TOO_LARGE:
        return S3API_ENTITY_TOO_LARGE;
    case PROBLEM_URI_TOO_LONG:
        return S3API_KEY_TOO_LONG;
    case PROBLEM_RANGE_NOT_SATISFIABLE:
        return S3API_INVALID_RANGE;
    case PROBLEM_DIGEST_MISMATCH:
    case PROBLEM_CHECKSUM_MISMATCH:
        return S3API_BAD_DIGEST;
    case PROBLEM_SIZE_MISMATCH:
        return S3API_INCOMPLETE_BODY;
    case PROBLEM_HEADERS_TOO_LARGE:
        return S3API_REQUEST_HEADER_TOO_LARGE;
    case PROBLEM_CORRUPT_COMPONENT:
    case PROBLEM_INTERNAL:
    case PROBLEM_NOT_DURABLE:
    case PROBLEM_INCOMPLETE:
        return S3API_INTERNAL_ERROR;
    case PROBLEM_NOT_IMPLEMENTED:
        return S3API_NOT_IMPLEMENTED;
    case PROBLEM_RATE_LIMITED:
    case PROBLEM_OVERLOADED:
        return S3API_SLOW_DOWN;
    case PROBLEM_DRAINING:
    case PROBLEM_STORE_UNAVAILABLE:
        return S3API_SERVICE_UNAVAILABLE;
    case PROBLEM_INSUFFICIENT_STORAGE:
        return S3API_INSUFFICIENT_STORAGE;
    case PROBLEM_INVALID_SLICE:
    case PROBLEM_INVALID_REQUEST:
    case PROBLEM_NOT_ACCEPTABLE:
    case PROBLEM_UNSUPPORTED_MEDIA_TYPE:
    case PROBLEM_EXPECTATION_FAILED:
    case PROBLEM_INVALID_MODEL:
    case PROBLEM_UNKNOWN_DTYPE:
    case PROBLEM_UNSUPPORTED_ENCODING:
    case PROBLEM_SLICE_OUT_OF_RANGE:
    case PROBLEM_SLICE_NOT_BYTE_ALIGNED:
    case PROBLEM_SHAPE_NOT_DIVISIBLE:
    case PROBLEM_RULE_UNUSED:
    case PROBLEM_NOT_REPRESENTABLE:
    case PROBLEM_COUNT:
        break;
    }
    return S3API_INVALID_REQUEST;
}

void s3api_error_write(struct xml *xml, enum s3api_error error, const char *message,
                       const char *resource, const char *request_id)
{
    assert(error < S3API_ERROR_COUNT && xml->depth == 0);
    xml_open(xml, "Error");
    xml_string(xml, "Code", errors[error].code);
    xml_string(xml, "Message", message);
    if (resource != NULL)
        xml_string(xml, "Resource", resource);
    xml_string(xml, "RequestId", request_id);
    xml_close(xml, "Error");
}

static enum outcome reply(struct request *request, enum s3api_error error, enum problem problem,
                          const char *message)
{
    struct zt_text path;
    const char *resource =
        router_path(request, &path) ? request_copy(request, path.bytes, path.length) : NULL;
    struct xml xml;

    xml_init(&xml);
    s3api_error_write(&xml, error, message, resource, request->id);
    problem_reply_body(request, problem,
                       &(struct problem_body){
                           .status = errors[error].status,
                           .media_type = XML_MEDIA_TYPE,
                           .text = xml.failed ? NULL : request_copy(request, xml.text, xml.length),
                           .length = xml.length});
    xml_free(&xml);
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
