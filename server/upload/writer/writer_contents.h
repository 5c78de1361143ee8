/* The contents of a streaming writer's upload: declared objects and received components, by name.
 * Compact, because there may be a million of them. The caller locks. */
#ifndef UPLOAD_WRITER_WRITER_CONTENTS_H
#define UPLOAD_WRITER_WRITER_CONTENTS_H

#include "zt/assemble.h"

/* One allocation; extents and name follow the structure. */
struct writer_component {
    struct writer_component *next; /* of its object; sorted by name, bytewise */
    uint64_t offset;
    uint64_t final_offset; /* in the file that a commit makes; only the commit uses it */
    uint64_t length;
    uint64_t decoded_length;
    uint8_t sha256[32]; /* of the decoded bytes */
    uint8_t stated[32]; /* the digest for the manifest; the algorithm determines the length */
    uint8_t dtype;      /* enum zt_dtype */
    uint8_t logical;    /* enum zt_logical */
    uint8_t rank;
    bool compressed;
    uint32_t name_length;
    uint64_t extents[];
};

struct writer_object {
    struct zt_text name;
    struct zt_declaration *declared; /* NULL: it is dense, with the shape of its data */
    struct writer_component *components;
    uint32_t component_count;
};

struct writer_contents {
    void *tree; /* of objects, sorted by name, bytewise */
    uint64_t object_count;
    uint64_t held_bytes;
};

/* Makes a component with name and shape, not in any list yet. The caller frees it with free() until
 * it is put into the contents. Returns NULL if out of memory. */
struct writer_component *writer_component_new(struct zt_text name, const struct zt_shape *shape);
struct zt_text writer_component_name(const struct writer_component *component);
struct zt_shape writer_component_shape(const struct writer_component *component);

void writer_contents_free(struct writer_contents *contents);

/* Returns a borrowed object; NULL if there is none of that name. */
struct writer_object *writer_contents_find(const struct writer_contents *contents,
                                           struct zt_text object);
struct writer_component *writer_object_find(const struct writer_object *object,
                                            struct zt_text component);

/* Takes over a declaration, which replaces an earlier one. False, without effect, if out of
 * memory. */
bool writer_contents_declare(struct writer_contents *contents, struct zt_text object,
                             struct zt_declaration *declaration);

/* Takes over a component. *out_replaced is the earlier one of that name, which the caller frees, or
 * NULL. Returns false, without effect, if out of memory. */
bool writer_contents_put(struct writer_contents *contents, struct zt_text object,
                         struct writer_component *component,
                         struct writer_component **out_replaced);

/* Calls visit for every object in order of name until it returns false. */
void writer_contents_walk(const struct writer_contents *contents,
                          bool (*visit)(void *context, const struct writer_object *object),
                          void *context);

#endif
