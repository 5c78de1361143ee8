#include "hub/xet/token.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hex.h"
#include "hub/write/lfs_key.h"

#define KEY_BYTES  32
#define MAC_DIGITS 64
/* The longest that a time of 64 bits has. */
#define END_DIGITS_MAX 19

static uint8_t key[KEY_BYTES];

static void make_key(void)
{
    while (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        ;
}

static bool sign(const char *text, uint8_t out_mac[32])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_key);
    return lfs_hmac(key, sizeof(key), text, strlen(text), out_mac);
}

/* What is signed: everything that the token states. */
static void print_claims(const struct xet_permit *permit, char out_text[XET_TOKEN_SIZE])
{
    size_t at = (size_t)snprintf(out_text, XET_TOKEN_SIZE, "%lld.%d.", (long long)permit->end,
                                 permit->sees_all);

    for (const char *from = permit->client; *from != '\0'; from++)
        at += (size_t)snprintf(out_text + at, XET_TOKEN_SIZE - at, "%02x", (unsigned char)*from);
    at += (size_t)snprintf(out_text + at, XET_TOKEN_SIZE - at, ".%s", permit->repo);
    assert(at < XET_TOKEN_SIZE);
}

bool xet_token_make(const struct xet_permit *permit, char out_token[XET_TOKEN_SIZE])
{
    char claims[XET_TOKEN_SIZE];
    uint8_t mac[32];
    size_t at;

    print_claims(permit, claims);
    if (!sign(claims, mac))
        return false;
    at = strcspn(claims, ".");
    memcpy(out_token, claims, at);
    out_token[at] = '.';
    for (size_t i = 0; i < sizeof(mac); i++)
        snprintf(out_token + at + 1 + 2 * i, 3, "%02x", mac[i]);
    strcpy(out_token + at + 1 + MAC_DIGITS, claims + at);
    return true;
}

/* Cuts the text before the next dot off; false if there is none. */
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
    time_t end = 0;

    if (text.length == 0 || text.length >= END_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return false;
        end = end * 10 + (text.bytes[i] - '0');
    }
    *out_end = end;
    return true;
}

static bool read_claims(struct zt_text token, struct xet_permit *out_permit, uint8_t out_mac[32])
{
    struct zt_text end;
    struct zt_text mac;
    struct zt_text all;
    struct zt_text client;

    if (!cut(&token, &end) || !cut(&token, &mac) || !cut(&token, &all) || !cut(&token, &client) ||
        !read_end(end, &out_permit->end) || (!zt_text_is(all, "0") && !zt_text_is(all, "1")) ||
        client.length / 2 >= sizeof(out_permit->client) || token.length >= sizeof(out_permit->repo))
        return false;
    out_permit->sees_all = zt_text_is(all, "1");
    memset(out_permit->client, 0, sizeof(out_permit->client));
    memcpy(out_permit->repo, token.bytes, token.length);
    out_permit->repo[token.length] = '\0';
    return zt_hex_read_lower(mac, out_mac, 32) &&
           zt_hex_read_lower(client, (uint8_t *)out_permit->client, client.length / 2);
}

/* In the same time, wherever they differ. */
static bool is_same(const uint8_t a[32], const uint8_t b[32])
{
    unsigned differences = 0;

    for (size_t i = 0; i < 32; i++)
        differences |= a[i] ^ b[i];
    return differences == 0;
}

bool xet_token_read(struct zt_text token, time_t now, struct xet_permit *out_permit)
{
    char claims[XET_TOKEN_SIZE];
    struct xet_permit permit;
    uint8_t stated[32] = {0};
    uint8_t mac[32];

    if (!read_claims(token, &permit, stated))
        return false;
    print_claims(&permit, claims);
    if (!sign(claims, mac) || !is_same(mac, stated) || permit.end <= now)
        return false;
    *out_permit = permit;
    return true;
}
