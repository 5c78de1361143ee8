/* A permit is the query of its address, with an HMAC of everything in the address. */
#include "hub/write/lfs_permit.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/decimal.h"
#include "base/hex.h"
#include "base/server.h"
#include "http/exchange/problem.h"

/* Parts, lengths and times have at most 20 digits. */
#define TEXT_SIZE (64 + HUB_REPO_SIZE + LFS_OID_SIZE + 5 * 21 + CLIENT_SIZE)

/* The texts before the client contain no line ends, and the client comes last. */
static void print_text(const struct lfs_permit *permit, char out_text[TEXT_SIZE])
{
    const int length = snprintf(out_text, TEXT_SIZE,
                                "ztserve-lfs-2\n%s\n%s\n%" PRIu64 "\n%" PRIu64 "\n%" PRIu64
                                "\n%" PRIu64 "\n%" PRIu64 "\n%s",
                                permit->repo, permit->oid, permit->length, permit->part,
                                permit->part_length, permit->expires, permit->line, permit->client);

    assert(length > 0 && length < TEXT_SIZE);
    (void)length;
}

bool lfs_permit_sign(const uint8_t *key, const struct lfs_permit *permit,
                     char out_code[TICKET_CODE_SIZE])
{
    char text[TEXT_SIZE];

    print_text(permit, text);
    return ticket_sign(key, text, out_code);
}

/* --- writing --- */

bool lfs_permit_print(const uint8_t *key, const char *base, const struct lfs_permit *permit,
                      char out_href[LFS_HREF_SIZE])
{
    char client[2 * CLIENT_SIZE];
    char part[24] = "";
    char code[TICKET_CODE_SIZE];
    int length;

    if (!lfs_permit_sign(key, permit, code))
        return false;
    zt_hex_write(client, permit->client, strlen(permit->client));
    if (permit->part > 0)
        snprintf(part, sizeof(part), "/%" PRIu64, permit->part);
    length = snprintf(out_href, LFS_HREF_SIZE,
                      "%s/%s.git/info/lfs/objects/%s%s?size=%" PRIu64 "&part_size=%" PRIu64
                      "&expires=%" PRIu64 "&client=%s&signature=%s",
                      base, permit->repo, permit->oid, part, permit->length, permit->part_length,
                      permit->expires, client, code);
    return length > 0 && length < LFS_HREF_SIZE;
}

struct staged_origin lfs_permit_origin(const struct request *request,
                                       const struct lfs_permit *permit)
{
    return (struct staged_origin){.repo = permit->repo,
                                  .client = permit->client,
                                  .owner = staged_owner(request, permit->client),
                                  .length = permit->length};
}

/* --- reading --- */

static bool query_number(struct request *request, const char *name, uint64_t *out_number)
{
    struct zt_text text;

    return request_query(request, name, 0, &text) && zt_decimal_read(text, UINT64_MAX, out_number);
}

static bool read_client(struct zt_text hex, char out_client[CLIENT_SIZE])
{
    const size_t length = hex.length / 2;

    if (length >= CLIENT_SIZE || !zt_hex_read_lower(hex, out_client, length))
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

/* Reads the values from the address without checking them. */
static bool read_address(struct request *request, bool has_part, struct lfs_permit *permit,
                         struct zt_text *out_code)
{
    const struct zt_text *names = request->names;
    struct zt_text client;

    permit->part = 0;
    return hub_repo_is_valid(names[0]) && copy(names[0], permit->repo, sizeof(permit->repo)) &&
           copy(names[1], permit->oid, sizeof(permit->oid)) &&
           (!has_part ||
            (zt_decimal_read(names[2], UINT64_MAX, &permit->part) && permit->part > 0)) &&
           query_number(request, "size", &permit->length) &&
           query_number(request, "part_size", &permit->part_length) &&
           query_number(request, "expires", &permit->expires) &&
           request_query(request, "client", 0, &client) && read_client(client, permit->client) &&
           request_query(request, "signature", 0, out_code) &&
           zt_hex_is_lower(*out_code, TICKET_CODE_SIZE - 1);
}

bool lfs_permit_read(struct request *request, bool has_part, struct lfs_permit *out_permit)
{
    struct zt_text code;
    char text[TEXT_SIZE];

    if (!read_address(request, has_part, out_permit, &code)) {
        problem_reply(request, PROBLEM_FORBIDDEN,
                      "send an object to the address that the LFS batch request returned");
        return false;
    }
    out_permit->line = access_line_of(request->access, out_permit->client);
    print_text(out_permit, text);
    if (!ticket_check(request->server->lfs_key, text, code) || out_permit->line == 0) {
        problem_reply(request, PROBLEM_FORBIDDEN,
                      "this address was not signed by this server, or the line of the tokens file "
                      "that it was signed for has changed: request a new one");
        return false;
    }
    /* Times are whole seconds: the permit is valid until the end of the last one. */
    if (out_permit->expires < (uint64_t)time(NULL)) {
        problem_reply(request, PROBLEM_FORBIDDEN, "this address has expired: request a new one");
        return false;
    }
    return true;
}
