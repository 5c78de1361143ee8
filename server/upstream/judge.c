/* The upstream's own words are not passed on: they may say anything. */
#include "upstream/judge.h"

#include <assert.h>
#include <string.h>

#include "base/base64.h"
#include "base/hex.h"
#include "remote/remote.h"
#include "upstream/lookups.h"

static enum zt_status refuse(struct zt_error *error, const char *why)
{
    return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET, "%s", why);
}

static enum zt_status deny(struct zt_error *error, const char *why)
{
    refuse(error, why);
    error->pause_ms = LOOKUPS_REMEMBERED_MS;
    return error->status;
}

/* Without a token, Hubs return 401 also for repositories that do not exist. */
static enum zt_status judge_denial(const struct judge_case *judged, struct zt_error *error)
{
    if (strcmp(judged->error_code, "GatedRepo") == 0)
        return deny(error, judged->has_token
                               ? "the upstream restricts access to the repository, and the "
                                 "configured token has none"
                               : "the upstream restricts access to the repository, and no token "
                                 "is configured");
    if (judged->status == 401 && !judged->has_token && !judged->is_file)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "the repository does not exist upstream, or needs a token");
    if (judged->status == 401)
        return deny(error, judged->has_token ? "the upstream refuses the configured token (401)"
                                             : "the upstream demands a token (401)");
    return deny(error, "the upstream denies access (403)");
}

static enum zt_status judge_absence(const struct judge_case *judged, struct zt_error *error)
{
    if (strcmp(judged->error_code, "RevisionNotFound") == 0)
        return zt_fail(error, ZT_STALE, judged->is_file ? UPSTREAM_REFUSED : NULL, ZT_NO_OFFSET,
                       "the upstream does not have this revision");
    if (!judged->is_file)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                       "the repository does not exist upstream");
    if (strcmp(judged->error_code, "EntryNotFound") == 0)
        return zt_fail(error, ZT_STALE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                       "the upstream does not have the file any more");
    return refuse(error, "the upstream does not have the repository any more (404)");
}

enum zt_status judge_status(const struct judge_case *judged, struct zt_error *error)
{
    assert(judged->status / 100 != 2);
    if (judged->status == 401 || judged->status == 403)
        return judge_denial(judged, error);
    if (judged->status == 404 || judged->status == 410)
        return judge_absence(judged, error);
    if (judged->status == 429)
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                       "the upstream limits requests (429)");
    if (judged->status >= 500 || judged->status == 408)
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                       "the upstream has an error (%u)", judged->status);
    return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_REFUSED, ZT_NO_OFFSET,
                   "the upstream refuses the request (%u)", judged->status);
}

enum zt_status judge_failure(const struct remote_exchange *exchange, struct zt_error *error)
{
    const unsigned status = exchange->head.status;

    if (exchange->failure == REMOTE_FAILURE_STOPPED)
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                       "the program is shutting down");
    if (exchange->failure == REMOTE_FAILURE_BUSY)
        return zt_fail(error, ZT_UNAVAILABLE, UPSTREAM_AWAY, ZT_NO_OFFSET,
                       status == 429 ? "the upstream limits requests (%u)"
                                     : "the upstream has an error (%u)",
                       status);
    return zt_fail(error, ZT_UNAVAILABLE,
                   exchange->failure == REMOTE_FAILURE_REFUSED ? UPSTREAM_REFUSED : UPSTREAM_AWAY,
                   ZT_NO_OFFSET, "the upstream cannot be read: %s", exchange->error.message);
}

/* --- files --- */

/* Without quotes and the mark of weak ones. */
static struct zt_text bare_etag(const char *etag)
{
    struct zt_text text = zt_text_from(etag);

    if (zt_text_starts_with(text, zt_text_from("W/")))
        text = (struct zt_text){text.bytes + 2, text.length - 2};
    if (text.length >= 2 && text.bytes[0] == '"' && text.bytes[text.length - 1] == '"')
        text = (struct zt_text){text.bytes + 1, text.length - 2};
    return text;
}

bool judge_etag_differs(const char *etag, enum upstream_digest kind, const uint8_t digest[32])
{
    const size_t length = kind == UPSTREAM_SHA256 ? 32 : 20;
    uint8_t stated[32];

    return kind != UPSTREAM_NO_DIGEST && zt_hex_read(bare_etag(etag), stated, length) &&
           memcmp(stated, digest, length) != 0;
}

bool judge_is_same_file(const struct upstream_place *place, const struct remote_head *head,
                        bool is_own)
{
    if (head->has_range && head->range_size != place->size_bytes)
        return false;
    if (!is_own)
        return true;
    if (head->repo_commit[0] != '\0' && strcmp(head->repo_commit, place->commit) != 0)
        return false;
    if (head->linked_size != UINT64_MAX && head->linked_size != place->size_bytes)
        return false;
    if (judge_etag_differs(head->linked_etag, place->digest_kind, place->digest))
        return false;
    /* The ETag of a redirect may be of anything. */
    return head->status / 100 != 2 ||
           !judge_etag_differs(head->etag, place->digest_kind, place->digest);
}

bool judge_read_digest(const char *repr_digest, uint8_t out_sha256[32])
{
    static const char begin[] = "sha-256=:";
    static const char end[] = "=:";
    const struct zt_text text = zt_text_from(repr_digest);
    const size_t digits = ZT_BASE64_SIZE(32) - 1 - 1;
    const char *at = repr_digest + sizeof(begin) - 1;
    size_t length;

    return text.length == sizeof(begin) - 1 + digits + sizeof(end) - 1 &&
           zt_text_starts_with(text, zt_text_from(begin)) &&
           zt_text_ends_with(text, zt_text_from(end)) &&
           zt_base64_read((struct zt_text){at, digits}, ZT_BASE64, out_sha256, 32, &length) &&
           length == 32;
}
