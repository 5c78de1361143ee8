/* One upload of a whole file, as its files share it: upload_begin.c (refusals) and upload.c
 * (everything else). */
#ifndef UPLOAD_WHOLE_UPLOAD_STATE_H
#define UPLOAD_WHOLE_UPLOAD_STATE_H

#include <stdatomic.h>

#include "http/fields/digest_fields.h"
#include "upload/shared/publication.h"
#include "upload/shared/registry.h"
#include "upload/whole/upload_hash.h"

enum upload_state { UPLOAD_RECEIVING, UPLOAD_FINISHING, UPLOAD_PUBLISHED, UPLOAD_FAILED };

struct upload {
    atomic_uint references; /* the request's, and one while the job is queued or runs */
    struct server *server;
    char name[MODEL_NAME_MAX + 1];
    struct publication publication; /* stored is NULL once it is published */
    struct digest_field content_digest;
    struct digest_field repr_digest;
    struct registry_entry entry;
    bool is_registered;
    enum upload_state state;
    /* Hashing behind the writer: by one worker at a time, never on a loop. */
    struct upload_hash hash;
    struct job job;
    atomic_bool is_queued;
    /* FAILED, or the failure kept while the rest of the body is thrown away. */
    bool has_failed;
    bool has_given_up; /* what was stored is gone, or about to go */
    enum problem problem;
    struct zt_error error;
};

/* Of the request, which holds it. NULL, and replied, when memory is out. */
struct upload *upload_new(struct request *request);

#endif
