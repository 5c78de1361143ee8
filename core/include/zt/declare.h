/* Declarations: what a client says in JSON of a zTensor file that is to be assembled
 * (zt/assemble.h) before its data is there: the file as a whole, an object, the type of a
 * component.
 *
 * Strict: members that are not known, or occur twice, are refused. Attributes become the CBOR that
 * the manifest will hold. */
#ifndef ZT_DECLARE_H
#define ZT_DECLARE_H

#include "zt/project.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* zTensor 2's bound on the number of dimensions, and this library's for 1.2. */
#define ZT_DECLARED_RANK_MAX 64

struct zt_shape {
    bool stated;
    uint8_t rank;
    uint64_t extents[ZT_DECLARED_RANK_MAX];
};

struct zt_declaration {
    /* ZT_TARGET_ZT1 or ZT_TARGET_ZT2. */
    enum zt_target target;
    /* Of an object: "dense" where nothing is said. */
    struct zt_text format;
    struct zt_shape shape;
    /* One CBOR map; empty where nothing is said. */
    struct zt_text attributes;
    /* What format and attributes lie in; private. */
    void *held;
};

/* {"version": "1.2.0" or "2", "attributes": {…}}, both optional; an empty text is {}. ZT_ARGUMENT
 * with a message for anything else, ZT_NO_MEMORY. Freed with zt_declaration_free. */
enum zt_status zt_declare_file(struct zt_text json, struct zt_declaration *out_declaration,
                               struct zt_error *error);

/* {"shape": […], "format": "…", "attributes": {…}}, all optional where the format is dense; others
 * need a shape. */
enum zt_status zt_declare_object(enum zt_target target, struct zt_text json,
                                 struct zt_declaration *out_declaration, struct zt_error *error);

/* Frees what it holds. Of a cleared one, too. */
void zt_declaration_free(struct zt_declaration *declaration);

/* "768,768"; an empty text is the shape of a scalar. ZT_ARGUMENT: malformed, too many dimensions,
 * or a number of elements that does not fit in 64 bits. */
enum zt_status zt_declare_shape(struct zt_text text, struct zt_shape *out_shape,
                                struct zt_error *error);

/* A component's dtype and, unless type is empty, its logical type, as the target has them: a
 * boolean is a dtype in 1.2, and u8 with a logical type in 2. ZT_UNSUPPORTED: one of them is not
 * known, or the type does not lie on the dtype. */
enum zt_status zt_declare_type(enum zt_target target, struct zt_text dtype, struct zt_text type,
                               enum zt_dtype *out_dtype, enum zt_logical *out_logical,
                               struct zt_error *error);

/* Bytes of a component of that shape. ZT_LIMIT. */
enum zt_status zt_declared_bytes(const struct zt_shape *shape, enum zt_dtype dtype,
                                 enum zt_logical logical, uint64_t *out_bytes,
                                 struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
