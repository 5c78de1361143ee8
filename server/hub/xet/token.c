#include "hub/xet/token.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/hex.h"
#include "input/ticket.h"

static uint8_t key[TICKET_KEY_BYTES];

static void make_key(void)
{
    ticket_key_make(key);
}

/* The key is made with the first token. */
static const uint8_t *key_of_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_key);
    return key;
}

/* Writes the signed text: all values of the token. */
static void print_claims(const struct xet_permit *permit, char out_text[XET_TOKEN_SIZE])
{
    char client[2 * CLIENT_SIZE];
    int length;

    zt_hex_write(client, permit->client, strlen(permit->client));
    length = snprintf(out_text, XET_TOKEN_SIZE, "%lld.%d.%016" PRIx64 ".%s.%s",
                      (long long)permit->end, permit->sees_all, permit->line, client, permit->repo);
    assert(length > 0 && length < XET_TOKEN_SIZE);
    (void)length;
}

bool xet_token_make(const struct xet_permit *permit, char out_token[XET_TOKEN_SIZE])
{
    char claims[XET_TOKEN_SIZE];
    char code[TICKET_CODE_SIZE];
    size_t at;

    print_claims(permit, claims);
    if (!ticket_sign(key_of_process(), claims, code))
        return false;
    at = strcspn(claims, ".");
    memcpy(out_token, claims, at);
    out_token[at] = '.';
    strcpy(stpcpy(out_token + at + 1, code), claims + at);
    return true;
}

/* Cuts off the text before the next dot. Returns false if there is none. */
static bool cut(struct zt_text *rest, struct zt_text *out_part)
{
    const char *dot = memchr(rest->bytes, '.', rest->length);

    if (dot == NULL)
        return false;
    *out_part = (struct zt_text){rest->bytes, (size_t)(dot - rest->bytes)};
    rest->length -= out_part->length + 1;
    rest->bytes = dot + 1;
    return true;
}

static bool read_end(struct zt_text text, time_t *out_end)
{
    uint64_t end;

    if (!zt_decimal_read(text, INT64_MAX, &end))
        return false;
    *out_end = (time_t)end;
    return true;
}

static bool read_line(struct zt_text text, uint64_t *out_line)
{
    uint8_t bytes[8] = {0};

    if (!zt_hex_read_lower(text, bytes, sizeof(bytes)))
        return false;
    *out_line = 0;
    for (size_t i = 0; i < sizeof(bytes); i++)
        *out_line = *out_line << 8 | bytes[i];
    return true;
}

static bool read_claims(struct zt_text token, struct xet_permit *out_permit,
                        struct zt_text *out_code)
{
    struct zt_text end;
    struct zt_text all;
    struct zt_text line;
    struct zt_text client;

    if (!cut(&token, &end) || !cut(&token, out_code) || !cut(&token, &all) || !cut(&token, &line) ||
        !cut(&token, &client) || !read_end(end, &out_permit->end) ||
        !read_line(line, &out_permit->line) || (!zt_text_is(all, "0") && !zt_text_is(all, "1")) ||
        client.length / 2 >= sizeof(out_permit->client) || token.length >= sizeof(out_permit->repo))
        return false;
    out_permit->sees_all = zt_text_is(all, "1");
    memset(out_permit->client, 0, sizeof(out_permit->client));
    memcpy(out_permit->repo, token.bytes, token.length);
    out_permit->repo[token.length] = '\0';
    return zt_hex_read_lower(client, (uint8_t *)out_permit->client, client.length / 2);
}

bool xet_token_read(struct zt_text token, time_t now, struct xet_permit *out_permit)
{
    char claims[XET_TOKEN_SIZE];
    struct xet_permit permit;
    struct zt_text code;

    if (!read_claims(token, &permit, &code))
        return false;
    print_claims(&permit, claims);
    if (!ticket_check(key_of_process(), claims, code) || permit.end <= now)
        return false;
    *out_permit = permit;
    return true;
}
