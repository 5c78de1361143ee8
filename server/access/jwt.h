/* JSON Web Tokens (RFC 7519) in the compact form of JWS (RFC 7515), signed with RS256 or ES256. */
#ifndef ACCESS_JWT_H
#define ACCESS_JWT_H

#include "access/jwks.h"

/* Longer tokens are refused. */
#define JWT_MAX 8192
/* Bytes of a subject. */
#define JWT_SUBJECT_MAX 1024

enum jwt_verdict {
    JWT_VALID,
    JWT_MALFORMED, /* not three parts, not JSON, or claims of the wrong type */
    JWT_UNSIGNED,  /* of another algorithm, or no key of the set made the signature */
    JWT_ISSUER,
    JWT_AUDIENCE,
    JWT_EXPIRED,
    JWT_EARLY /* not valid yet */
};

/* Who must have made a token, and for whom. */
struct jwt_terms {
    const struct jwks *keys;
    const char *issuer;
    const char *audience;
    int64_t skew_s; /* how far the issuer's clock may be off */
};

struct jwt_claims {
    char subject[JWT_SUBJECT_MAX + 1];
    size_t subject_length;
    int64_t expires_s; /* since 1970; the skew is added */
};

/* Whether a text has the form of a token: two dots in it. */
bool jwt_is_likely(struct zt_text token);

/* Checks a token at a time since 1970. Claims are set if it is valid. No claim is looked at before
 * the signature is right. */
enum jwt_verdict jwt_check(const struct jwt_terms *terms, struct zt_text token, int64_t now_s,
                           struct jwt_claims *out_claims);

#endif
