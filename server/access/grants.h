/* The tokens file: which clients there are, how each proves who it is, and what it may do.
 *
 * One client a line; blank lines are fine, and # begins a comment:
 *
 *     name  read|write|admin  PROOF  [globs of models]
 *
 * PROOF is the SHA-256 of a token (64 hex digits); mtls:NAME, a name in a verified certificate; or
 * jwt:GLOB, the subjects of JSON Web Tokens. Of several lines that fit a certificate or a subject
 * the first counts. Without globs a client may see all models. */
#ifndef ACCESS_GRANTS_H
#define ACCESS_GRANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zt/text.h"

/* Bytes of a client's name. */
#define GRANT_NAME_MAX 63
#define GRANTS_MAX     4096

/* Each scope includes the one before it. */
enum scope { SCOPE_READ, SCOPE_WRITE, SCOPE_ADMIN };

struct glob_set;

/* What one client may do. Lives as long as the grants. */
struct grant {
    const char *name; /* NULL: whatever the client's certificate says */
    enum scope scope;
    unsigned line;
    uint64_t print;          /* a hash of the line's text; odd */
    struct glob_set *models; /* NULL: all */
};

struct grants;

/* The SHA-256 of a token. */
struct token_hash {
    uint64_t words[4];
};

/* False if out of memory. */
bool token_hash_make(struct zt_text token, struct token_hash *out_hash);

/* Reads a tokens file. NULL with one line in error that names the file and the line but repeats
 * nothing that may be a secret. */
struct grants *grants_load(const char *path, char *error, size_t error_size);

/* The same for a text, which is copied; path is for messages. */
struct grants *grants_parse(struct zt_text text, const char *path, char *error, size_t error_size);

/* Takes NULL. */
void grants_free(struct grants *grants);

/* The grant of whoever proves itself so; NULL: none. The time that grants_of_token takes does not
 * depend on how much of the token is right. */
const struct grant *grants_of_token(const struct grants *grants, const struct token_hash *hash);
/* names: all those in a verified certificate, NULL-terminated. */
const struct grant *grants_of_certificate(const struct grants *grants, const char *const *names);
const struct grant *grants_of_subject(const struct grants *grants, struct zt_text subject);

/* The grant of the client of a name; NULL: none. */
const struct grant *grants_of_name(const struct grants *grants, const char *name);

/* Whether any client may see only some models. */
bool grants_limit_models(const struct grants *grants);

/* Whether a client may see a model; a model that does not exist is judged by its name. */
bool grant_covers(const struct grant *grant, struct zt_text model);

/* Whether a client may see any model whose name begins so ("org/"). */
bool grant_covers_some(const struct grant *grant, struct zt_text beginning);

/* Whether a client may see all models whose names begin so. */
bool grant_covers_all(const struct grant *grant, struct zt_text beginning);

#endif
