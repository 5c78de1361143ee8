/* Assembling a zTensor file: encoding the manifest for data that the caller has already written in
 * place, in any order.
 *
 *     zt_assembly_new(target, attributes, &assembly, &error);
 *     zt_assembly_object(assembly, &object, &error);          by name, bytewise
 *         zt_assembly_component(assembly, &component, &error);    of that object, by name, bytewise
 *     zt_assembly_check(assembly, &error);                    the layouts' rules
 *     zt_assembly_end(assembly, offset, &bytes, &length, &error);
 *     zt_assembly_free(assembly);
 *
 * The caller writes the head of zt_target_places at 0, each component at a multiple of the data
 * alignment with zeros between them, and finally the bytes of zt_assembly_end. All texts are
 * borrowed until zt_assembly_free. */
#ifndef ZT_ASSEMBLE_H
#define ZT_ASSEMBLE_H

#include "zt/declare.h"
#include "zt/digest.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* The file layout of a version of zTensor. Alignments are in bytes. */
struct zt_places {
    uint8_t head[8];
    uint64_t data_alignment;
    uint64_t manifest_alignment;
    /* The algorithm of components' digests, and whether they cover stored rather than decoded
     * bytes. */
    enum zt_digest_algorithm digest;
    bool digest_covers_stored;
    /* The encoding of compressed components. */
    enum zt_encoding encoding;
};

/* Here and below, target must be ZT_TARGET_ZT1 or ZT_TARGET_ZT2. */
struct zt_places zt_target_places(enum zt_target target);

struct zt_assembly_object {
    struct zt_text name;
    struct zt_text format;
    struct zt_text attributes; /* zt_declaration.attributes */
    const struct zt_shape *shape;
};

struct zt_assembly_component {
    struct zt_text name;
    enum zt_dtype dtype;
    enum zt_logical logical;
    /* Stored in the encoding of zt_target_places. */
    bool compressed;
    uint64_t offset;
    uint64_t length;
    uint64_t decoded_length;
    struct zt_digest digest; /* as zt_target_places requires */
};

/* Checks everything about a component that does not depend on the other components of its object:
 * name, type and decoded length. Ignores offset, length and digest. ZT_INVALID with the layout's
 * rule. */
enum zt_status zt_assembly_check_component(enum zt_target target,
                                           const struct zt_assembly_object *object,
                                           const struct zt_assembly_component *component,
                                           struct zt_error *error);

struct zt_assembly;

enum zt_status zt_assembly_new(enum zt_target target, struct zt_text attributes,
                               struct zt_assembly **out_assembly, struct zt_error *error);

/* Add an object, and a component of the object added last. ZT_ARGUMENT for a name that does not
 * follow the previous one, ZT_INVALID for a name that the version does not allow; ZT_NO_MEMORY. */
enum zt_status zt_assembly_object(struct zt_assembly *assembly,
                                  const struct zt_assembly_object *object, struct zt_error *error);
enum zt_status zt_assembly_component(struct zt_assembly *assembly,
                                     const struct zt_assembly_component *component,
                                     struct zt_error *error);

/* Checks the rules of the objects' layouts. ZT_INVALID with rule, object and component if a
 * component that a layout needs is missing or has the wrong type or size. */
enum zt_status zt_assembly_check(const struct zt_assembly *assembly, struct zt_error *error);

/* Encodes manifest and footer, which the caller writes at offset, a multiple of manifest_alignment
 * after all data. ZT_UNSUPPORTED for a manifest of more than 1 GiB; ZT_NO_MEMORY. *out_bytes is
 * freed with free(). */
enum zt_status zt_assembly_end(struct zt_assembly *assembly, uint64_t offset, uint8_t **out_bytes,
                               size_t *out_length, struct zt_error *error);

/* Takes NULL. */
void zt_assembly_free(struct zt_assembly *assembly);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
