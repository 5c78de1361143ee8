/* Signatures of S3 clients. The lines are a method, a target and the fields of a header. Every
 * signature that can be read is within its bounds, and none is right, because no input knows the
 * secret. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "http/fields/sigv4.h"

#define FIELDS_MAX 100

static char *take_line(char **at)
{
    char *line = *at;

    *at += strcspn(*at, "\n");
    if (**at != '\0')
        *(*at)++ = '\0';
    return line;
}

static struct header_field field_of(char *line)
{
    char *colon = strchr(line, ':');

    if (colon != NULL)
        *colon++ = '\0';
    else
        colon = line + strlen(line);
    return (struct header_field){line, colon, (uint32_t)strlen(line), (uint32_t)strlen(colon)};
}

static void check_body(const struct sigv4 *signature, const uint8_t key[AWS_KEY_BYTES])
{
    struct sigv4_body body;
    char hex[AWS_HEX_SIZE];

    sigv4_payload_read(signature->payload, &body);
    FUZZ_ASSERT(body.payload <= SIGV4_PAYLOAD_UNKNOWN && !body.is_verified);
    sigv4_body_seed(signature, key, &body);
    FUZZ_ASSERT(sigv4_sign_chunk(&body, body.seed, key, hex));
    FUZZ_ASSERT(sigv4_is_signature(zt_text_from(hex), hex));
    FUZZ_ASSERT(sigv4_sign_trailer(&body, hex, key, hex));
}

static void check_signature(const struct sigv4 *signature, const struct sigv4_request *request)
{
    uint8_t key[AWS_KEY_BYTES];

    FUZZ_ASSERT(signature->access_key.length > 0 && signature->access_key.length <= SIGV4_KEY_MAX);
    FUZZ_ASSERT(signature->scope.day.length == AWS_DAY_LENGTH);
    FUZZ_ASSERT(signature->scope.region.length > 0 &&
                signature->scope.region.length <= AWS_SCOPE_MAX);
    FUZZ_ASSERT(strlen(signature->date) == AWS_DATE_SIZE - 1);
    FUZZ_ASSERT(sigv4_check_time(signature, signature->date_s) == SIGV4_TIMELY);
    FUZZ_ASSERT(sigv4_check_time(signature, signature->date_s + 2 * SIGV4_EXPIRES_MAX) !=
                SIGV4_TIMELY);
    (void)sigv4_unsigned_field(signature, request);
    FUZZ_ASSERT(aws_key_derive(zt_text_from("secret"), &signature->scope, key));
    FUZZ_ASSERT(!sigv4_verify(signature, request, key));
    check_body(signature, key);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct header_field fields[FIELDS_MAX];
    struct sigv4_request request = {.fields = fields};
    char *text = strndup((const char *)bytes, length);
    char *at = text;
    struct sigv4 signature;
    const char *why;
    enum sigv4_form form;

    FUZZ_ASSERT(text != NULL);
    request.method = take_line(&at);
    request.target = take_line(&at);
    while (*at != '\0' && request.field_count < FIELDS_MAX)
        fields[request.field_count++] = field_of(take_line(&at));
    form = sigv4_read(&request, &signature, &why);
    FUZZ_ASSERT((why != NULL) == (form == SIGV4_MALFORMED));
    if (form == SIGV4_HEADER || form == SIGV4_QUERY)
        check_signature(&signature, &request);
    free(text);
    return 0;
}
