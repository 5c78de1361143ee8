/* Warns of settings that are well-formed, but lock out clients or let all in. */
#include <assert.h>
#include <string.h>

#include "access/access.h"
#include "access/grants_state.h"
#include "base/log.h"

static const struct entry *first_of(const struct grants *grants, enum proof proof)
{
    for (size_t i = 0; i < grants->count; i++)
        if (grants->entries[i].proof == proof)
            return &grants->entries[i];
    return NULL;
}

/* Lines of the tokens file that never match, because no client can provide the proof. */
static void warn_of_lines(const struct access *access, const struct config *config)
{
    const struct entry *subject;
    const struct entry *certificate;

    assert(access->grants != NULL);
    subject = first_of(access->grants, PROOF_SUBJECT);
    certificate = first_of(access->grants, PROOF_CERTIFICATE);
    if (access->grants->count == 0)
        log_write(
            LOG_LEVEL_WARN,
            "auth.tokens: %s has no clients: all requests return 401, except /healthz and /readyz",
            config->auth.tokens);
    if (subject != NULL && access->keys == NULL)
        log_write(LOG_LEVEL_WARN,
                  "auth.tokens: %s, line %u: jwt: never matches, because auth.jwks is not set",
                  config->auth.tokens, subject->grant.line);
    if (certificate != NULL && !access->has_certificates)
        log_write(LOG_LEVEL_WARN,
                  "auth.tokens: %s, line %u: mtls: never matches, because tls.client_ca is not set",
                  config->auth.tokens, certificate->grant.line);
    if (subject == NULL && access->keys != NULL)
        log_write(LOG_LEVEL_WARN,
                  "auth.jwks: %s has no effect, because %s (auth.tokens) has no line with jwt:",
                  config->auth.jwks, config->auth.tokens);
}

/* Whether the version before this one had the same file, and said so. */
static bool was_public(const struct access *before, const char *path)
{
    const struct grants *grants = before != NULL ? before->grants : NULL;

    return grants != NULL && grants->is_public && grants->path != NULL &&
           strcmp(grants->path, path) == 0;
}

/* Rights that clients now have without the proof that was needed before. */
static void warn_of_opening(const struct access *access, const struct access *before,
                            const struct config *config)
{
    const char *deeds = config->writable ? "read and write" : "read";

    if (before->needs_client && !access->needs_client)
        log_write(LOG_LEVEL_WARN, "%s is no longer set: any client may now %s",
                  before->grants != NULL ? "auth.tokens" : "tls.client_ca", deeds);
    else if (before->grants != NULL && access->grants == NULL)
        log_write(LOG_LEVEL_WARN,
                  "auth.tokens is no longer set: any client with a certificate may now %s", deeds);
}

/* The keys file concerns the S3 API only, which is easily overlooked. */
static void warn_of_keys(const struct access *access, const struct access *before,
                         const struct config *config)
{
    const bool had_keys = before != NULL && before->s3_keys != NULL;

    if (had_keys && access->s3_keys == NULL && !access->needs_client)
        log_write(LOG_LEVEL_WARN, "s3.keys is no longer set: any S3 client may now %s",
                  config->writable ? "read and write" : "read");
    if (access->s3_keys == NULL)
        return;
    if (s3_keys_count(access->s3_keys) == 0)
        log_write(LOG_LEVEL_WARN, "s3.keys: %s has no access keys", config->s3.keys);
    if (!access->needs_client && (!had_keys || before->needs_client))
        log_write(LOG_LEVEL_WARN,
                  "s3.keys protects only the S3 API: any client may %s at all other paths, because "
                  "auth.tokens is not set",
                  config->writable ? "read and write" : "read");
}

void access_warn(const struct access *access, const struct access *before,
                 const struct config *config)
{
    if (before != NULL)
        warn_of_opening(access, before, config);
    warn_of_keys(access, before, config);
    if (access->grants == NULL)
        return;
    if (access->grants->is_public && !was_public(before, config->auth.tokens))
        log_write(LOG_LEVEL_WARN, "auth.tokens: %s can be read by every user of this machine",
                  config->auth.tokens);
    warn_of_lines(access, config);
}
