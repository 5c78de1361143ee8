/* AWS Signature Version 4, by hand: libcurl's own breaks on keys with "+=()" (Debian 12 and 13). */
#ifndef REMOTE_SIGN_H
#define REMOTE_SIGN_H

#include "remote/credentials.h"
#include "remote/remote.h"

#define SIGN_AUTHORIZATION_SIZE 1024
#define SIGN_DATE_SIZE          17

/* Signs for one service and region with the credentials of the moment; remembers how far the
 * service's clock is off. Any thread. */
struct signer;

/* credentials are borrowed. NULL without memory. */
struct signer *signer_new(struct credentials *credentials, const char *region, const char *service);
void signer_free(struct signer *signer);

struct signed_fields {
    uint64_t credential;                         /* another number if other credentials signed */
    char authorization[SIGN_AUTHORIZATION_SIZE]; /* empty: anonymous, nothing else is sent either */
    char date[SIGN_DATE_SIZE];                   /* x-amz-date */
    char content_sha256[65 + 16];                /* x-amz-content-sha256 */
    char token[CREDENTIALS_TOKEN_SIZE];          /* x-amz-security-token; may be empty */
};

/* Signs one try of an exchange; host as it is sent, with a port unless it is the scheme's. False:
 * credentials cannot be had now. */
bool signer_sign(struct signer *signer, const struct remote_exchange *exchange, const char *host,
                 int64_t now_s, struct signed_fields *out_fields);

/* An answer said that the clocks differ (RequestTimeTooSkewed), with its Date and that of the
 * request; or that the credentials are not good (400, 401, 403), which are then renewed if that is
 * possible. True: to be tried once more. */
bool signer_adjust_clock(struct signer *signer, const char *date,
                         const char signed_date[SIGN_DATE_SIZE]);
bool signer_note_refusal(struct signer *signer);

#endif
