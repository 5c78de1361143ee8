/* Loads and counts versions, and finds the client of a request. */
#include "access/access.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access/jwt.h"
#include "access/token_memory.h"
#include "base/clock.h"

const struct access access_unrestricted;

/* Those of lines are odd. */
#define LINE_OF_ANYBODY     2
#define LINE_OF_CERTIFICATE 4

/* With client certificates but without a tokens file; each is called by its own first name. */
static const struct grant any_certificate = {.scope = SCOPE_WRITE};

static bool load_keys(struct access *access, const struct config *config, char *error,
                      size_t error_size)
{
    if (config->auth.jwks[0] == '\0')
        return true;
    access->keys = jwks_load(config->auth.jwks, error, error_size);
    if (access->keys == NULL)
        return false;
    access->issuer = strdup(config->auth.issuer);
    access->audience = strdup(config->auth.audience);
    access->skew_s = config->auth.skew_s;
    if (access->issuer == NULL || access->audience == NULL)
        snprintf(error, error_size, "out of memory");
    return access->issuer != NULL && access->audience != NULL;
}

static bool load(struct access *access, const struct config *config, char *error, size_t error_size)
{
    const bool has_tokens = config->auth.tokens[0] != '\0';

    access->has_certificates = config->tls.client_ca[0] != '\0';
    access->needs_client = has_tokens || access->has_certificates;
    access->metrics_public = config->metrics.public;
    origin_rules_load(config, access->needs_client, &access->pages);
    if (config->s3.keys[0] != '\0') {
        access->s3_keys = s3_keys_load(config->s3.keys, error, error_size);
        if (access->s3_keys == NULL)
            return false;
    }
    if (!has_tokens)
        return true;
    access->grants = grants_load(config->auth.tokens, error, error_size);
    return access->grants != NULL && load_keys(access, config, error, error_size);
}

struct access *access_load(const struct config *config, char *error, size_t error_size)
{
    struct access *access = calloc(1, sizeof(*access));

    if (access == NULL || !proxies_load(config->trusted_proxies, &access->proxies)) {
        snprintf(error, error_size, "out of memory");
        free(access);
        return NULL;
    }
    atomic_init(&access->holders, 1);
    if (load(access, config, error, error_size))
        return access;
    access_release(access);
    return NULL;
}

struct access *access_hold(struct access *access)
{
    const unsigned before = atomic_fetch_add_explicit(&access->holders, 1, memory_order_relaxed);

    assert(before > 0);
    (void)before;
    return access;
}

void access_release(struct access *access)
{
    if (access == NULL)
        return;
    assert(atomic_load(&access->holders) > 0);
    if (atomic_fetch_sub_explicit(&access->holders, 1, memory_order_acq_rel) > 1)
        return;
    grants_free(access->grants);
    s3_keys_free(access->s3_keys);
    jwks_free(access->keys);
    free(access->issuer);
    free(access->audience);
    proxies_free(&access->proxies);
    free(access);
}

/* --- clients --- */

static const struct grant *by_certificate(const struct access *access, const char *const *names,
                                          enum access_failure *out_failure)
{
    const struct grant *grant;

    *out_failure = ACCESS_NO_CREDENTIALS;
    if (!access->has_certificates || names == NULL)
        return NULL;
    *out_failure = ACCESS_UNNAMED_CERTIFICATE;
    if (names[0] == NULL)
        return NULL;
    if (access->grants == NULL)
        return &any_certificate;
    grant = grants_of_certificate(access->grants, names);
    *out_failure = ACCESS_UNKNOWN_CERTIFICATE;
    return grant;
}

static enum access_failure failure_of(enum jwt_verdict verdict)
{
    switch (verdict) {
    case JWT_MALFORMED:
    case JWT_UNSIGNED:
        break;
    case JWT_ISSUER:
    case JWT_AUDIENCE:
        return ACCESS_FOREIGN_TOKEN;
    case JWT_EXPIRED:
    case JWT_EARLY:
        return ACCESS_EXPIRED_TOKEN;
    case JWT_VALID:
        return ACCESS_UNKNOWN_SUBJECT;
    }
    return ACCESS_UNKNOWN_TOKEN;
}

static const struct grant *by_web_token(const struct access *access, struct zt_text token,
                                        int64_t now_s, int64_t *out_expires_s,
                                        enum access_failure *out_failure)
{
    const struct jwt_terms terms = {access->keys, access->issuer, access->audience, access->skew_s};
    struct jwt_claims claims;
    const enum jwt_verdict verdict = jwt_check(&terms, token, now_s, &claims);

    assert(access->keys != NULL && access->grants != NULL);
    *out_failure = failure_of(verdict);
    if (verdict != JWT_VALID)
        return NULL;
    *out_expires_s = claims.expires_s;
    return grants_of_subject(access->grants,
                             (struct zt_text){claims.subject, claims.subject_length});
}

static const struct grant *by_token(const struct access *access, struct zt_text token,
                                    struct token_memory *memory, enum access_failure *out_failure)
{
    struct token_hash hash;
    const struct grant *grant;
    int64_t now_s;
    int64_t expires_s;

    *out_failure = ACCESS_UNKNOWN_TOKEN;
    if (access->grants == NULL)
        return NULL;
    *out_failure = ACCESS_NO_MEMORY;
    if (!token_hash_make(token, &hash))
        return NULL;
    *out_failure = ACCESS_UNKNOWN_TOKEN;
    grant = grants_of_token(access->grants, &hash);
    if (grant == NULL && access->keys != NULL && jwt_is_likely(token)) {
        now_s = clock_wall_ns() / CLOCK_NS_PER_S;
        grant = token_memory_find(memory, &hash, now_s);
        if (grant != NULL)
            return grant;
        grant = by_web_token(access, token, now_s, &expires_s, out_failure);
        if (grant != NULL)
            token_memory_keep(memory, &hash, grant, expires_s);
    }
    return grant;
}

const struct grant *access_identify(const struct access *access,
                                    const struct credentials *credentials,
                                    struct token_memory *memory, enum access_failure *out_failure)
{
    assert(access->needs_client);
    switch (credentials->authorization) {
    case AUTHORIZATION_ABSENT:
        return by_certificate(access, credentials->names, out_failure);
    case AUTHORIZATION_BEARER:
        return by_token(access, credentials->token, memory, out_failure);
    case AUTHORIZATION_OTHER:
    case AUTHORIZATION_MALFORMED:
        break;
    }
    *out_failure = ACCESS_BAD_CREDENTIALS;
    return NULL;
}

uint64_t access_line_of(const struct access *access, const char *client)
{
    const struct grant *grant;

    if (!access->needs_client)
        return LINE_OF_ANYBODY;
    if (access->grants == NULL)
        return LINE_OF_CERTIFICATE;
    grant = grants_of_name(access->grants, client);
    return grant != NULL ? grant->print : 0;
}
