/* What a tokens file becomes in memory, for the files that read it and look clients up. */
#ifndef ACCESS_GRANTS_STATE_H
#define ACCESS_GRANTS_STATE_H

#include "access/grants.h"

enum proof { PROOF_TOKEN, PROOF_CERTIFICATE, PROOF_SUBJECT };

struct entry {
    struct grant grant; /* first */
    enum proof proof;
    union {
        struct token_hash sha256;
        struct zt_text name; /* PROOF_CERTIFICATE */
        struct {
            struct zt_text glob;
            struct glob_set *set;
        } subject;
    } is;
};

struct grants {
    char *path;            /* of the file; NULL: there is none */
    bool is_public;        /* every user of this machine can read it */
    char *text;            /* of the file; names point into it */
    struct entry *entries; /* in the order of the file */
    size_t count;
    size_t capacity;
};

#endif
