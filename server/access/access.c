/* Loads and counts versions, and finds the client of a request. */
#include "access/access.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

const struct access access_unrestricted;

/* With client certificates but without a tokens file; each is called by its own first name. */
static const struct grant any_certificate = {.scope = SCOPE_WRITE};

static atomic_uint_fast64_t failures[ACCESS_FAILURES];

static bool load(struct access *access, const struct config *config, char *error, size_t error_size)
{
    const bool has_tokens = config->auth.tokens[0] != '\0';

    access->has_certificates = config->tls.client_ca[0] != '\0';
    access->needs_client = has_tokens || access->has_certificates;
    access->metrics_public = config->metrics.public;
    if (!has_tokens)
        return true;
    access->grants = grants_load(config->auth.tokens, error, error_size);
    return access->grants != NULL;
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
    proxies_free(&access->proxies);
    free(access);
}

/* --- clients --- */

static const struct grant *by_certificate(const struct access *access, const char *const *names,
                                          enum access_failure *out_failure)
{
    const struct grant *grant;

    *out_failure = ACCESS_NO_CREDENTIALS;
    if (!access->has_certificates || names == NULL || names[0] == NULL)
        return NULL;
    if (access->grants == NULL)
        return &any_certificate;
    grant = grants_of_certificate(access->grants, names);
    *out_failure = ACCESS_UNKNOWN_CERTIFICATE;
    return grant;
}

static const struct grant *by_token(const struct access *access, struct zt_text token,
                                    enum access_failure *out_failure)
{
    *out_failure = ACCESS_UNKNOWN_TOKEN;
    return access->grants != NULL ? grants_of_token(access->grants, token) : NULL;
}

const struct grant *access_identify(const struct access *access,
                                    const struct credentials *credentials,
                                    enum access_failure *out_failure)
{
    assert(access->needs_client);
    switch (credentials->authorization) {
    case AUTHORIZATION_ABSENT:
        return by_certificate(access, credentials->names, out_failure);
    case AUTHORIZATION_BEARER:
        return by_token(access, credentials->token, out_failure);
    case AUTHORIZATION_OTHER:
    case AUTHORIZATION_MALFORMED:
        break;
    }
    *out_failure = ACCESS_BAD_CREDENTIALS;
    return NULL;
}

void access_count_failure(enum access_failure failure)
{
    assert(failure < ACCESS_FAILURES);
    atomic_fetch_add_explicit(&failures[failure], 1, memory_order_relaxed);
}

uint64_t access_failures(enum access_failure failure)
{
    assert(failure < ACCESS_FAILURES);
    return atomic_load_explicit(&failures[failure], memory_order_relaxed);
}

const char *access_failure_name(enum access_failure failure)
{
    static const char *const names[] = {
        [ACCESS_NO_CREDENTIALS] = "no_credentials",
        [ACCESS_BAD_CREDENTIALS] = "bad_credentials",
        [ACCESS_UNKNOWN_TOKEN] = "unknown_token",
        [ACCESS_UNKNOWN_CERTIFICATE] = "unknown_certificate",
        [ACCESS_SCOPE] = "scope",
        [ACCESS_MODEL] = "model",
    };

    assert(failure < ACCESS_FAILURES);
    return names[failure];
}
