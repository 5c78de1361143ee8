/* Declarations: the description in JSON of a zTensor file to be assembled (zt/assemble.h), stated
 * before its data arrives: of the file as a whole, of an object, and of a component's type.
 *
 * Parsing is strict: unknown and repeated members are rejected. Attributes are converted to the
 * CBOR that the manifest will hold. */
#ifndef ZT_DECLARE_H
#define ZT_DECLARE_H

#include "zt/project.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* zTensor 2's bound on the number of dimensions, and this library's bound for 1.2. */
#define ZT_DECLARED_RANK_MAX 64

struct zt_shape {
    bool stated;
    uint8_t rank;
    uint64_t extents[ZT_DECLARED_RANK_MAX];
};

struct zt_declaration {
    /* ZT_TARGET_ZT1 or ZT_TARGET_ZT2. */
    enum zt_target target;
    /* An object's layout; "dense" by default. */
    struct zt_text format;
    struct zt_shape shape;
    /* One CBOR map; empty if none are declared. */
    struct zt_text attributes;
    /* Owns format and attributes; private. */
    void *held;
};

/* Parses the declaration of a file: {"version": "1.2.0" or "2", "attributes": {…}}. Both members
 * are optional, and an empty text means {}. ZT_ARGUMENT with a message for anything else;
 * ZT_NO_MEMORY. Freed with zt_declaration_free. */
enum zt_status zt_declare_file(struct zt_text json, struct zt_declaration *out_declaration,
                               struct zt_error *error);

/* Parses the declaration of an object: {"shape": […], "format": "…", "attributes": {…}}. All
 * members are optional, except that a format other than dense requires a shape. Fails as
 * zt_declare_file does. Freed with zt_declaration_free. */
enum zt_status zt_declare_object(enum zt_target target, struct zt_text json,
                                 struct zt_declaration *out_declaration, struct zt_error *error);

/* Frees what the declaration holds, not the structure; a zeroed declaration is allowed. */
void zt_declaration_free(struct zt_declaration *declaration);

/* Parses a shape such as "768,768"; an empty text is the shape of a scalar. ZT_ARGUMENT if the text
 * is malformed, has too many dimensions, or its number of elements does not fit in 64 bits. */
enum zt_status zt_declare_shape(struct zt_text text, struct zt_shape *out_shape,
                                struct zt_error *error);

/* Parses a component's dtype and, unless type is empty, its logical type, as the target spells
 * them: a boolean is a dtype in 1.2, and u8 with a logical type in 2. ZT_UNSUPPORTED if either is
 * unknown or if the logical type is not stored as that dtype. */
enum zt_status zt_declare_type(enum zt_target target, struct zt_text dtype, struct zt_text type,
                               enum zt_dtype *out_dtype, enum zt_logical *out_logical,
                               struct zt_error *error);

/* The length in bytes of a component of that shape. ZT_LIMIT if it does not fit in 64 bits. */
enum zt_status zt_declared_bytes(const struct zt_shape *shape, enum zt_dtype dtype,
                                 enum zt_logical logical, uint64_t *out_bytes,
                                 struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
