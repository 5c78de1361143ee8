/* Assembling a zTensor file: encoding the manifest of data that the caller has already put in
 * place, in any order.
 *
 *     zt_assembly_new(target, attributes, &assembly, &error);
 *     zt_assembly_object(assembly, &object, &error);          by name, bytewise
 *         zt_assembly_component(assembly, &component, &error);    of that object, by name, bytewise
 *     zt_assembly_check(assembly, &error);                    the layouts' rules
 *     zt_assembly_end(assembly, offset, &bytes, &length, &error);
 *     zt_assembly_free(assembly);
 *
 * The file is the head of zt_target_places at 0, each component at a multiple of the data alignment
 * with zeros before it, then the bytes of zt_assembly_end. All texts are borrowed until
 * zt_assembly_free. */
#ifndef ZT_ASSEMBLE_H
#define ZT_ASSEMBLE_H

#include "zt/declare.h"
#include "zt/digest.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* How a version of zTensor is laid out in a file. */
struct zt_places {
    uint8_t head[8];
    uint64_t data_alignment;
    uint64_t manifest_alignment;
    /* Of each component, over its stored or its decoded bytes. */
    enum zt_digest_algorithm digest;
    bool digest_covers_stored;
    /* Of compressed components. */
    enum zt_encoding encoding;
};

/* target: ZT_TARGET_ZT1 or ZT_TARGET_ZT2, here and below. */
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
    /* zstd in zTensor 1.2, zt.zstd-seekable/1 in zTensor 2. */
    bool compressed;
    uint64_t offset;
    uint64_t length;
    uint64_t decoded_length;
    struct zt_digest digest; /* as zt_target_places says */
};

/* Checks what can be known about a component without the others of its object: name, type and
 * decoded length; offset, length and digest are ignored. ZT_INVALID with the layout's rule. */
enum zt_status zt_assembly_check_component(enum zt_target target,
                                           const struct zt_assembly_object *object,
                                           const struct zt_assembly_component *component,
                                           struct zt_error *error);

struct zt_assembly;

enum zt_status zt_assembly_new(enum zt_target target, struct zt_text attributes,
                               struct zt_assembly **out_assembly, struct zt_error *error);

/* ZT_ARGUMENT for names that do not ascend, ZT_INVALID for one that the version does not allow. */
enum zt_status zt_assembly_object(struct zt_assembly *assembly,
                                  const struct zt_assembly_object *object, struct zt_error *error);
enum zt_status zt_assembly_component(struct zt_assembly *assembly,
                                     const struct zt_assembly_component *component,
                                     struct zt_error *error);

/* ZT_INVALID with rule, object and component if a component that an object's layout needs is
 * missing or has the wrong type or size. */
enum zt_status zt_assembly_check(const struct zt_assembly *assembly, struct zt_error *error);

/* Manifest and footer, to be written at offset, which is a multiple of manifest_alignment after all
 * data. ZT_UNSUPPORTED for a manifest of more than 1 GiB. *out_bytes is freed with free(). */
enum zt_status zt_assembly_end(struct zt_assembly *assembly, uint64_t offset, uint8_t **out_bytes,
                               size_t *out_length, struct zt_error *error);

/* Takes NULL. */
void zt_assembly_free(struct zt_assembly *assembly);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
