/* Walking zTensor 2's manifest: what the readers of its maps share (zt2_manifest.c, zt2_part.c). */
#ifndef ZT_FORMATS_ZT2_WALK_H
#define ZT_FORMATS_ZT2_WALK_H

#include "cbor/cbor_read.h"
#include "model/model_build.h"

/* The most dimensions an object may have. */
#define ZT2_RANK_MAX 64
/* Objects, parts and the keys of attributes, in bytes. */
#define ZT2_NAME_MAX 1024

struct zt2_walk {
    struct zt_cbor_reader reader;
    struct zt_builder *builder;
    struct zt_error *error;
    /* What is being read. */
    struct zt_object *object;
    struct zt_component *part;
    struct zt_shard *shard;
    bool has_encoding;
    bool has_decoded_length;
};

struct zt2_field {
    const char *key;
    bool required;
    /* value's head has been read; the function reads the rest. */
    enum zt_status (*read)(struct zt2_walk *walk, const struct zt_cbor_item *value);
};

/* Refuses by the schema rule, at value's head. */
enum zt_status zt2_refuse(struct zt2_walk *walk, const struct zt_cbor_item *value,
                          const char *message);

/* Says in which object, and part, a failure happened, unless something further inside has said so.
 */
void zt2_name_failure(const struct zt2_walk *walk, bool in_part);

/* Reads a map whose head is map: each field by its function, anything else skipped. At most 32
 * fields. */
enum zt_status zt2_read_fields(struct zt2_walk *walk, const struct zt_cbor_item *map,
                               const struct zt2_field *fields, unsigned count);

/* Reads a map whose keys are all texts: calls read with each key; the value is still to be read. */
enum zt_status zt2_read_entries(struct zt2_walk *walk, const struct zt_cbor_item *map,
                                enum zt_status (*read)(struct zt2_walk *walk,
                                                       const struct zt_cbor_item *key));

/* Refuses a text that cannot be a name: 1 to ZT2_NAME_MAX bytes, no NUL. */
enum zt_status zt2_check_name(struct zt2_walk *walk, const struct zt_cbor_item *name);

enum zt_status zt2_read_text(struct zt2_walk *walk, const struct zt_cbor_item *value,
                             const char **out_text, uint32_t *out_length);
enum zt_status zt2_read_digest(struct zt2_walk *walk, const struct zt_cbor_item *value,
                               const char **out_text, uint32_t *out_length);

/* Orders shards by name, bytewise. */
int zt2_compare_shards(const void *a, const void *b);

/* An entry of an object's parts. */
enum zt_status zt2_read_part(struct zt2_walk *walk, const struct zt_cbor_item *key);

#endif
