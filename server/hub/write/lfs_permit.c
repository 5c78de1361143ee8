/* A permit is the query of its address, with the HMAC of all that the address says. */
#include "hub/write/lfs_permit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/server.h"
#include "http/exchange/problem.h"
#include "hub/write/lfs_key.h"

/* Parts, lengths and times have at most 20 digits. */
#define TEXT_SIZE (64 + HUB_REPO_SIZE + LFS_OID_SIZE + 4 * 21 + CLIENT_SIZE)
#define CODE_SIZE 65

/* The texts before the client hold no line's end, and nothing follows the client. */
bool lfs_permit_sign(const uint8_t *key, const struct lfs_permit *permit, uint8_t out_code[32])
{
    char text[TEXT_SIZE];
    const int length =
        snprintf(text, sizeof(text),
                 "ztserve-lfs-1\n%s\n%s\n%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n%s",
                 permit->repo, permit->oid, permit->length, permit->part, permit->part_length,
                 permit->expires, permit->client);

    return lfs_hmac(key, LFS_KEY_BYTES, text, (size_t)length, out_code);
}

/* --- writing --- */

static void print_client(const char *client, char out_hex[2 * CLIENT_SIZE])
{
    out_hex[0] = '\0';
    for (size_t i = 0; client[i] != '\0'; i++)
        snprintf(out_hex + 2 * i, 3, "%02x", (unsigned)(unsigned char)client[i]);
}

bool lfs_permit_print(const uint8_t *key, const char *base, const struct lfs_permit *permit,
                      char out_href[LFS_HREF_SIZE])
{
    char client[2 * CLIENT_SIZE];
    char part[24] = "";
    char code_text[LFS_OID_SIZE];
    uint8_t code[32];
    int length;

    if (!lfs_permit_sign(key, permit, code))
        return false;
    lfs_oid_print(code, code_text);
    print_client(permit->client, client);
    if (permit->part > 0)
        snprintf(part, sizeof(part), "/%" PRIu64, permit->part);
    length = snprintf(out_href, LFS_HREF_SIZE,
                      "%s/%s.git/info/lfs/objects/%s%s?size=%" PRIu64 "&part_size=%" PRIu64
                      "&expires=%" PRIu64 "&client=%s&signature=%s",
                      base, permit->repo, permit->oid, part, permit->length, permit->part_length,
                      permit->expires, client, code_text);
    return length > 0 && length < LFS_HREF_SIZE;
}

/* --- reading --- */

static bool read_number(struct zt_text text, uint64_t *out_number)
{
    uint64_t number = 0;

    if (text.length == 0 || text.length > 19)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(text.bytes[i] - '0');
    }
    *out_number = number;
    return true;
}

static bool query_number(struct request *request, const char *name, uint64_t *out_number)
{
    struct zt_text text;

    return request_query(request, name, 0, &text) && read_number(text, out_number);
}

static bool read_client(struct zt_text hex, char out_client[CLIENT_SIZE])
{
    const size_t length = hex.length / 2;

    if (length >= CLIENT_SIZE || !lfs_hex_parse(hex, (uint8_t *)out_client))
        return false;
    out_client[length] = '\0';
    return memchr(out_client, '\0', length) == NULL;
}

static bool copy(struct zt_text text, char *out_text, size_t size)
{
    if (text.length >= size)
        return false;
    memcpy(out_text, text.bytes, text.length);
    out_text[text.length] = '\0';
    return true;
}

/* What the address says, true or not. */
static bool read_address(struct request *request, bool has_part, struct lfs_permit *permit,
                         uint8_t out_code[32])
{
    const struct zt_text *names = request->names;
    struct zt_text client;
    struct zt_text code;

    permit->part = 0;
    return hub_repo_is_valid(names[0]) && copy(names[0], permit->repo, sizeof(permit->repo)) &&
           copy(names[1], permit->oid, sizeof(permit->oid)) &&
           (!has_part || (read_number(names[2], &permit->part) && permit->part > 0)) &&
           query_number(request, "size", &permit->length) &&
           query_number(request, "part_size", &permit->part_length) &&
           query_number(request, "expires", &permit->expires) &&
           request_query(request, "client", 0, &client) && read_client(client, permit->client) &&
           request_query(request, "signature", 0, &code) && lfs_oid_parse(code, out_code);
}

/* Takes as long wherever the codes differ. */
static bool is_equal(const uint8_t one[32], const uint8_t other[32])
{
    unsigned difference = 0;

    for (size_t i = 0; i < 32; i++)
        difference |= (unsigned)(one[i] ^ other[i]);
    return difference == 0;
}

bool lfs_permit_read(struct request *request, bool has_part, struct lfs_permit *out_permit)
{
    uint8_t stated[32];
    uint8_t code[32];

    if (!read_address(request, has_part, out_permit, stated)) {
        problem_reply(request, PROBLEM_FORBIDDEN,
                      "an object is sent to the address that the LFS batch request has answered");
        return false;
    }
    if (!lfs_permit_sign(request->server->lfs_key, out_permit, code)) {
        problem_reply_no_memory(request);
        return false;
    }
    if (!is_equal(stated, code)) {
        problem_reply(request, PROBLEM_FORBIDDEN,
                      "this address was not signed by this server: ask for a new one");
        return false;
    }
    /* Whole seconds: until the last one is over. */
    if (out_permit->expires < (uint64_t)time(NULL)) {
        problem_reply(request, PROBLEM_FORBIDDEN,
                      "this address is not valid any more: ask for a new one");
        return false;
    }
    return true;
}
