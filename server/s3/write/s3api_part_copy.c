/* UploadPartCopy: a part with the bytes of an object, or of a range of it. */
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/server.h"
#include "http/exchange/s3api_error.h"
#include "s3/s3api_xml.h"
#include "s3/write/handlers.h"
#include "s3/write/s3api_arrival.h"
#include "s3/write/s3api_copy_source.h"
#include "s3/write/s3api_multipart.h"
#include "s3/write/s3api_write_checks.h"
#include "upload/shared/write_checks.h"

struct part_copy {
    struct s3api_copy_source source;
    struct s3api_upload *upload; /* the request holds it */
    uint32_t number;
    bool has_range;
    uint64_t first; /* of the range, as its last byte */
    uint64_t last;
    struct s3api_part part; /* once it is done */
    bool was_run;
    bool is_open; /* the source was opened */
    bool is_done;
    bool is_past_end; /* the range is not within the object */
    struct failure failure;
};

/* Reads "bytes=first-last". */
static bool parse_range(const char *value, uint64_t *out_first, uint64_t *out_last)
{
    static const char unit[] = "bytes=";
    struct zt_text rest = zt_text_from(value);

    if (!zt_text_starts_with(rest, zt_text_from(unit)))
        return false;
    rest = (struct zt_text){rest.bytes + strlen(unit), rest.length - strlen(unit)};
    if (!zt_decimal_take(&rest, out_first) || rest.length == 0 || rest.bytes[0] != '-')
        return false;
    rest = (struct zt_text){rest.bytes + 1, rest.length - 1};
    return zt_decimal_read(rest, INT64_MAX, out_last) && *out_first <= *out_last;
}

/* Returns false if it has replied. */
static bool read_range(struct request *request, struct part_copy *copy)
{
    const char *value = request_header(request, "x-amz-copy-source-range");

    copy->has_range = value != NULL;
    if (value == NULL || parse_range(value, &copy->first, &copy->last))
        return true;
    s3api_problem(request, S3API_INVALID_ARGUMENT,
                  "x-amz-copy-source-range must have the form bytes=first-last");
    return false;
}

static void close_source(void *source)
{
    s3api_copy_source_close(source);
}

void s3api_upload_part_copy_begin(struct request *request)
{
    struct zt_text key;
    uint32_t number;
    struct s3api_upload *upload;
    struct part_copy *copy;

    if (s3api_refuse_key(request, &key, NULL) || s3api_refuse_unsupported(request) ||
        !s3api_query_part(request, &number))
        return;
    upload = s3api_multipart_find(request, key);
    copy = upload != NULL ? request_new_context(request, sizeof(*copy)) : NULL;
    if (copy == NULL)
        return;
    copy->upload = upload;
    copy->number = number;
    request_hold(request, &copy->source, close_source);
    (void)(read_range(request, copy) && s3api_copy_source_read(request, &copy->source));
}

/* --- on a worker --- */

/* Returns false with is_past_end or failure set. */
static bool find_range(struct part_copy *copy, const struct stored_file *file, uint64_t *out_length)
{
    const uint64_t size = zt_source_size(file->source);

    if (!copy->has_range) {
        *out_length = size;
        return true;
    }
    copy->is_past_end = copy->last >= size;
    *out_length = copy->last - copy->first + 1;
    return !copy->is_past_end ||
           failure_refuse(&copy->failure, PROBLEM_RANGE_NOT_SATISFIABLE,
                          "the object has only %llu bytes", (unsigned long long)size);
}

/* An object that is written to in place, not replaced, may have given old and new bytes. */
static bool is_unwritten(const struct stored_file *file, struct failure *failure)
{
    return stored_file_is_unwritten(file) ||
           failure_refuse(failure, PROBLEM_CONFLICT,
                          "the source was written to while it was copied");
}

static bool copy_bytes(struct part_copy *copy, const struct stored_file *file, uint64_t client)
{
    static const struct s3api_part_checksum none = {.algorithm = ""};
    struct s3api_arrival *arrival;
    uint64_t length;
    bool is_done;

    if (!find_range(copy, file, &length))
        return false;
    arrival = s3api_arrival_begin(copy->upload, copy->number, length, &copy->failure);
    if (arrival == NULL)
        return false;
    is_done = s3api_arrival_copy(arrival, file->source, copy->first, length, &copy->failure) &&
              is_unwritten(file, &copy->failure) &&
              s3api_arrival_finish(arrival, &none, client, &copy->part, &copy->failure);
    s3api_arrival_end(arrival);
    return is_done;
}

static void work(struct request *request)
{
    struct part_copy *copy = request->context;

    copy->is_open = s3api_copy_source_open(request, &copy->source);
    if (copy->is_open)
        copy->is_done = copy_bytes(copy, copy->source.file, request_client_key(request));
    s3api_copy_source_close(&copy->source);
}

/* --- the response --- */

static enum outcome reply_done(struct request *request, const struct part_copy *copy)
{
    static const char root[] = "CopyPartResult";
    struct xml_writer *xml = s3api_xml_new(request);
    char etag[S3API_PART_ETAG_SIZE];

    if (xml == NULL)
        return OUTCOME_READY;
    s3api_part_etag(&copy->part, etag);
    s3api_xml_begin(xml, root);
    s3api_xml_time(xml, "LastModified", copy->part.modified);
    xml_write_string(xml, "ETag", etag);
    xml_write_close(xml, root);
    return s3api_xml_reply(request, 200, xml);
}

enum outcome s3api_upload_part_copy(struct request *request)
{
    struct part_copy *copy = request->context;

    if (!copy->was_run) {
        copy->was_run = true;
        return request_work_long(request, work);
    }
    if (!copy->is_open)
        return s3api_problem(request, copy->source.error, "%s", copy->source.why);
    if (copy->is_past_end)
        return s3api_problem(request, S3API_INVALID_RANGE, "%s", copy->failure.error.message);
    return copy->is_done ? reply_done(request, copy) : failure_reply(request, &copy->failure);
}
