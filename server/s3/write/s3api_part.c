/* UploadPart. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/server.h"
#include "http/exchange/s3api_error.h"
#include "s3/write/handlers.h"
#include "s3/write/s3api_arrival.h"
#include "s3/write/s3api_body.h"
#include "s3/write/s3api_multipart.h"
#include "s3/write/s3api_write_checks.h"
#include "upload/shared/write_checks.h"

struct part_put {
    struct s3api_body body;
    struct s3api_upload *upload; /* the request holds it */
    struct s3api_arrival *arrival;
    struct s3api_part part; /* once it is done */
    bool was_run;
    bool is_done;
    struct failure failure;
};

static void free_put(void *thing)
{
    struct part_put *put = thing;

    s3api_arrival_end(put->arrival);
    s3api_body_free(&put->body);
}

/* --- the body --- */

static void store(struct request *request, const struct body_piece *piece)
{
    struct part_put *put = request->context;

    assert(put->arrival != NULL);
    if (put->failure.is_set)
        return;
    s3api_body_hash(&put->body, piece->bytes, piece->length);
    (void)s3api_arrival_write(put->arrival, piece->bytes, piece->length, &put->failure);
}

static const struct body_receiver storing = {.receive = store, .on_workers = true};

static void receive(struct request *request, const struct body_piece *piece)
{
    struct part_put *put = request->context;

    if (!put->failure.is_set)
        (void)s3api_body_receive(&put->body, request, piece);
}

static const struct body_receiver receiver = {.receive = receive, .on_workers = true};

/* --- before the body --- */

static void begin(struct request *request, struct part_put *put, uint32_t number)
{
    if (!s3api_body_begin(&put->body, request, &storing, false) ||
        write_refuse_large(request, put->body.length))
        return;
    put->arrival = s3api_arrival_begin(put->upload, number, put->body.length, &put->failure);
    if (put->arrival == NULL)
        failure_reply(request, &put->failure);
}

void s3api_upload_part_begin(struct request *request)
{
    struct zt_text key;
    uint32_t number;
    struct s3api_upload *upload;
    struct part_put *put;

    if (s3api_refuse_key(request, &key, NULL) || s3api_refuse_unsupported(request) ||
        !s3api_query_part(request, &number) || write_refuse_absent_body(request))
        return;
    upload = s3api_multipart_find(request, key);
    put = upload != NULL ? request_new_context(request, sizeof(*put)) : NULL;
    if (put == NULL)
        return;
    put->upload = upload;
    request->receiver = &receiver;
    request_hold(request, put, free_put);
    begin(request, put, number);
}

/* --- the end --- */

static void copy_checksum(const struct s3api_body *body, enum checksum checksum,
                          struct s3api_part_checksum *out_checksum)
{
    assert(sizeof(out_checksum->value) >= CHECKSUM_TEXT_SIZE);
    snprintf(out_checksum->algorithm, sizeof(out_checksum->algorithm), "%s",
             checksum_name(checksum));
    checksum_write(&body->values[checksum], out_checksum->value);
}

/* Keeps the checksum of the upload's algorithm, or else any that the client has stated. */
static void choose_checksum(const struct part_put *put, struct s3api_part_checksum *out_checksum)
{
    const char *algorithm = put->upload->terms.algorithm;

    *out_checksum = (struct s3api_part_checksum){.algorithm = ""};
    for (enum checksum checksum = 0; checksum < CHECKSUM_MD5; checksum++)
        if (put->body.is_stated[checksum] &&
            (out_checksum->algorithm[0] == '\0' || strcmp(checksum_name(checksum), algorithm) == 0))
            copy_checksum(&put->body, checksum, out_checksum);
}

static void work(struct request *request)
{
    struct part_put *put = request->context;
    struct s3api_part_checksum checksum;

    assert(put->arrival != NULL && !put->is_done);
    if (!s3api_body_finish(&put->body, NULL))
        return;
    choose_checksum(put, &checksum);
    put->is_done = s3api_arrival_finish(put->arrival, &checksum, request_client_key(request),
                                        &put->part, &put->failure);
}

static enum outcome reply_done(struct request *request, const struct part_put *put)
{
    char tag[S3API_PART_ETAG_SIZE];
    const char *etag;

    assert(put->is_done && put->part.number >= 1);
    s3api_part_etag(&put->part, tag);
    etag = request_print(request, "%s", tag);
    if (etag == NULL)
        return problem_reply_no_memory(request);
    reply_empty(request, 200);
    representation_field(&request->reply, "ETag", etag);
    s3api_body_reply_checksums(request, &put->body);
    return OUTCOME_READY;
}

/* The part ends before the response, after which the client may end the upload. */
enum outcome s3api_upload_part(struct request *request)
{
    struct part_put *put = request->context;

    if (!put->was_run) {
        put->was_run = true;
        if (!put->failure.is_set && !put->body.has_failed)
            return request_work_long(request, work);
    }
    s3api_arrival_end(put->arrival);
    put->arrival = NULL;
    if (put->body.has_failed)
        return s3api_body_reply_failure(request, &put->body);
    if (!put->is_done)
        return failure_reply(request, &put->failure);
    return reply_done(request, put);
}
