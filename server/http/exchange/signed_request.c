/* Checks signatures, and keeps what they say about the body for the handlers. */
#include "http/exchange/signed_request.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "http/exchange/client.h"
#include "http/exchange/request_state.h"
#include "http/exchange/s3api_error.h"

/* --- the body --- */

const struct sigv4_body *signed_request_body(struct request *request)
{
    struct request_state *state = request_state(request);
    const char *stated;

    if (state->signed_body != NULL)
        return state->signed_body;
    state->signed_body = request_allocate(request, sizeof(*state->signed_body));
    if (state->signed_body == NULL)
        return NULL;
    stated = request_header(request, "x-amz-content-sha256");
    sigv4_payload_read(zt_text_from(stated != NULL ? stated : ""), state->signed_body);
    return state->signed_body;
}

/* The request's memory is used again for other requests. */
static void wipe_body(void *body)
{
    explicit_bzero(body, sizeof(struct sigv4_body));
}

/* Keeps the signing key only if the signatures of chunks must be checked. */
static bool keep_body(struct request *request, const struct sigv4 *signature,
                      const uint8_t key[AWS_KEY_BYTES])
{
    struct sigv4_body *body = request_allocate(request, sizeof(*body));

    assert(request_state(request)->signed_body == NULL);
    if (body == NULL)
        return false;
    sigv4_payload_read(signature->payload, body);
    if (body->payload == SIGV4_PAYLOAD_CHUNKS || body->payload == SIGV4_PAYLOAD_CHUNKS_TRAILER) {
        sigv4_body_seed(signature, key, body);
        request_hold(request, body, wipe_body);
    }
    request_state(request)->signed_body = body;
    return true;
}

/* --- refusals --- */

static void refuse(struct request *request, enum access_failure failure, enum s3api_error error,
                   const char *why)
{
    access_count_failure(failure);
    s3api_problem(request, error, "%s", why);
}

static void refuse_malformed(struct request *request, const char *why)
{
    refuse(request, ACCESS_BAD_CREDENTIALS,
           request_header(request, "Authorization") != NULL
               ? S3API_AUTHORIZATION_HEADER_MALFORMED
               : S3API_AUTHORIZATION_QUERY_PARAMETERS_ERROR,
           why);
}

/* Returns true if the request was refused. */
static bool refuse_untimely(struct request *request, const struct sigv4 *signature)
{
    switch (sigv4_check_time(signature, clock_wall_ns() / CLOCK_NS_PER_S)) {
    case SIGV4_TIMELY:
        return false;
    case SIGV4_SKEWED:
        refuse(request, ACCESS_EXPIRED_SIGNATURE, S3API_REQUEST_TIME_TOO_SKEWED,
               "the date of the request differs from the server's by more than 15 minutes");
        break;
    case SIGV4_EARLY:
        refuse(request, ACCESS_EXPIRED_SIGNATURE, S3API_ACCESS_DENIED,
               "this presigned address is not valid yet");
        break;
    case SIGV4_EXPIRED:
        refuse(request, ACCESS_EXPIRED_SIGNATURE, S3API_ACCESS_DENIED,
               "this presigned address has expired");
        break;
    }
    return true;
}

static bool refuse_unsigned_field(struct request *request, const struct sigv4 *signature,
                                  const struct sigv4_request *header)
{
    const struct header_field *field = sigv4_unsigned_field(signature, header);

    assert(!request->replied);
    if (field == NULL)
        return false;
    access_count_failure(ACCESS_BAD_SIGNATURE);
    s3api_problem(request, S3API_ACCESS_DENIED, "the field %.64s must be signed", field->name);
    return true;
}

/* --- the signature --- */

static void verify(struct request *request, const struct s3_key *key, const struct sigv4 *signature,
                   const struct sigv4_request *header)
{
    uint8_t signing_key[AWS_KEY_BYTES];

    assert(request->grant == NULL && zt_text_is(signature->access_key, key->grant.name));
    if (!aws_key_derive(key->secret, &signature->scope, signing_key)) {
        problem_reply_no_memory(request);
        return;
    }
    if (!sigv4_verify(signature, header, signing_key)) {
        refuse(request, ACCESS_BAD_SIGNATURE, S3API_SIGNATURE_DOES_NOT_MATCH,
               "the signature is wrong: check the secret key, and that no proxy changes the path, "
               "the query or the field Host");
    } else if (!refuse_unsigned_field(request, signature, header)) {
        if (keep_body(request, signature, signing_key)) {
            request->grant = &key->grant;
            request_set_client(request, key->grant.name);
        } else {
            problem_reply_no_memory(request);
        }
    }
    explicit_bzero(signing_key, sizeof(signing_key));
}

bool signed_request_authorize(struct request *request)
{
    const struct request_state *state = request_state_const(request);
    const struct access *access = request->access;
    const struct sigv4_request header = {method_name(request->method), request_target(request),
                                         state->headers, state->header_count};
    struct sigv4 signature;
    const struct s3_key *key;
    const char *why;

    assert(access->s3_keys != NULL || access->needs_client);
    switch (sigv4_read(&header, &signature, &why)) {
    case SIGV4_ABSENT:
        if (access->needs_client)
            return false;
        refuse(request, ACCESS_NO_CREDENTIALS, S3API_ACCESS_DENIED,
               "sign the request with an access key of this server (AWS4-HMAC-SHA256)");
        return true;
    case SIGV4_MALFORMED:
        refuse_malformed(request, why);
        return true;
    case SIGV4_HEADER:
    case SIGV4_QUERY:
        break;
    }
    key = access->s3_keys != NULL ? s3_keys_find(access->s3_keys, signature.access_key) : NULL;
    if (key == NULL)
        refuse(request, ACCESS_UNKNOWN_KEY, S3API_INVALID_ACCESS_KEY_ID,
               "this server has no such access key");
    else if (!refuse_untimely(request, &signature))
        verify(request, key, &signature, &header);
    return true;
}
