/* The maps of zTensor manifests, of every version: known fields in any order, none twice, unknown
 * ones passed over.
 *
 * A reader lists a map's fields with what reads each; the rest is here, under the version's own
 * rule names. Manifests of 0.1 and 1.x are lenient CBOR, so keys that occur twice are found here;
 * in zTensor 2, which is deterministic, the CBOR reader finds them by their order. */
#ifndef ZT_FORMATS_FIELDS_H
#define ZT_FORMATS_FIELDS_H

#include "cbor/cbor_read.h"
#include "model/model_build.h"

/* What a version calls the rules that are applied here. */
struct zt_family_rules {
    const char *schema;
    const char *shape;
    /* Where blobs may be; NULL if zt_blob_check is not used. */
    const char *alignment;
    const char *bounds;
    /* Names of objects and components, and keys of attributes, have 1 to 1024 bytes without NUL;
     * NULL if they may be anything. */
    const char *name;
};

/* A field whose value is about to be read. */
struct zt_field {
    const struct zt_map_field *entry;
    struct zt_cbor_reader *reader;
    const struct zt_family_rules *rules;
    uint64_t offset; /* absolute: of the value's head, or of the tags before it */
};

#define ZT_FIELD_REQUIRED 1u
#define ZT_FIELD_NULLABLE 2u /* null means that the field is absent */

struct zt_map_field {
    const char *key;
    unsigned flags;
    /* Reads the value whole. */
    enum zt_status (*read)(void *context, const struct zt_field *field, struct zt_error *error);
    size_t at; /* for zt_field_read_uint and zt_field_read_text: where in the context it goes */
};

struct zt_map_schema {
    const char *what; /* "the root", for messages */
    const struct zt_family_rules *rules;
    const struct zt_map_field *fields;
    unsigned count; /* at most 32 */
    /* Called with each unknown field as encoded, key and value; may be NULL. */
    enum zt_status (*pass)(void *context, struct zt_text pair, struct zt_error *error);
};

/* Reads the map at the reader whole. Rules: schema, CborDuplicateKey (offset of the key), schema
 * for a missing field (offset of the map). */
enum zt_status zt_map_read(struct zt_cbor_reader *reader, const struct zt_map_schema *schema,
                           void *context, struct zt_error *error);

/* Rejects a manifest whose first byte begins neither an item of that major type (RFC 8949 section
 * 3.1) nor a tag, before the rest is read, because a file may claim a GiB of it. Rule schema, at
 * the manifest. */
#define ZT_CBOR_MAJOR_ARRAY 4
#define ZT_CBOR_MAJOR_MAP   5
enum zt_status zt_manifest_check_start(struct zt_source *source, uint64_t offset, unsigned major,
                                       const struct zt_family_rules *rules, struct zt_error *error);

/* --- values --- */

/* A text and the position of its head. bytes is NULL if the field is absent. */
struct zt_placed_text {
    struct zt_text text;
    uint64_t offset;
};

enum zt_status zt_field_uint(const struct zt_field *field, uint64_t *out_value,
                             struct zt_error *error);
enum zt_status zt_field_text(const struct zt_field *field, struct zt_placed_text *out_text,
                             struct zt_error *error);

/* The same as a zt_map_field's read: into the uint64_t, or the struct zt_placed_text, at entry->at
 * of the context. */
enum zt_status zt_field_read_uint(void *context, const struct zt_field *field,
                                  struct zt_error *error);
enum zt_status zt_field_read_text(void *context, const struct zt_field *field,
                                  struct zt_error *error);

/* Fails by the schema rule, with a message that the field "is not" wanted. */
enum zt_status zt_field_fail(const struct zt_field *field, const char *wanted,
                             struct zt_error *error);

/* Adds the dimensions in an array to the object added last. Rule shape: more than 64. */
enum zt_status zt_field_dimensions(const struct zt_field *field, struct zt_builder *builder,
                                   struct zt_error *error);
/* The same; rule shape also for a product past 64 bits. */
enum zt_status zt_field_shape(const struct zt_field *field, struct zt_builder *builder,
                              struct zt_error *error);

/* Reads a map from any names to values, calling read with each key to read its value whole. Names
 * that occur twice are left to the model's builder. */
enum zt_status zt_field_entries(const struct zt_field *field,
                                enum zt_status (*read)(void *context,
                                                       const struct zt_cbor_item *key,
                                                       struct zt_error *error),
                                void *context, struct zt_error *error);

/* Reads a map with text keys; *out_span is the map as encoded, without the tags before it. */
enum zt_status zt_field_attributes(const struct zt_field *field, struct zt_text *out_span,
                                   struct zt_error *error);

/* Applies the name rule to a key. */
enum zt_status zt_name_check(const struct zt_cbor_item *key, const struct zt_family_rules *rules,
                             struct zt_error *error);

/* --- blobs of zTensor 0.1 and 1.x --- */

/* Rejects stored bytes that are not aligned to 64, or not between the head of 64 bytes and the
 * manifest. The error's offset is the blob's. */
enum zt_status zt_blob_check(const struct zt_component *component, const struct zt_model *model,
                             const struct zt_family_rules *rules, struct zt_error *error);

#endif
