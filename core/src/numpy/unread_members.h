/* The members of an archive that are not read, each with the reason. They become the model's
 * attribute "unread", a map from member to reason. */
#ifndef ZT_NUMPY_UNREAD_MEMBERS_H
#define ZT_NUMPY_UNREAD_MEMBERS_H

#include "base/memory.h"

struct unread_member;

/* Starts zeroed; freed with unread_members_free. */
struct unread_members {
    struct unread_member *list;
    size_t count;
    size_t capacity;
    struct zt_buffer reasons;
};

/* Adds a member, whose name must live as long as the list and may be any bytes. Long reasons are
 * cut. ZT_NO_MEMORY. */
enum zt_status unread_members_add(struct unread_members *members, struct zt_text name,
                                  const char *reason, struct zt_error *error);

/* Makes the attributes of a model, a CBOR map in the arena; empty if there are no members. A name
 * that occurs twice is kept once. ZT_LIMIT, ZT_NO_MEMORY. */
enum zt_status unread_members_keep(struct unread_members *members, struct zt_arena *arena,
                                   struct zt_text *out_attributes, struct zt_error *error);

void unread_members_free(struct unread_members *members);

#endif
