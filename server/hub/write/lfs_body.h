/* What the bodies of objects and of their parts have in common. */
#ifndef HUB_WRITE_LFS_BODY_H
#define HUB_WRITE_LFS_BODY_H

#include "hub/write/lfs_permit.h"
#include "upload/shared/registry.h"

/* A body in the registry, counted toward the limit of who asked for its address. */
struct lfs_body {
    struct server *server;
    struct registry_entry entry;
    bool is_registered;
};

/* True: replied; what no such body may have, whatever its address. */
bool lfs_body_refuse_form(struct request *request);
/* True: replied; a declared length that is not what the address is for. */
bool lfs_body_refuse_length(struct request *request, uint64_t length);

/* Clears and registers it. True: replied, since the client has too many. */
bool lfs_body_refuse_crowd(struct request *request, const struct lfs_permit *permit,
                           uint64_t length, struct lfs_body *body);
void lfs_body_note(struct lfs_body *body, uint64_t received);
/* Harmless for one that is not registered. */
void lfs_body_end(struct lfs_body *body, bool is_done);

#endif
