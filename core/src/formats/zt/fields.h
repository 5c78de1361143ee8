/* Reading the maps in manifests of all zTensor versions: known fields in any order, none twice,
 * unknown ones ignored.
 *
 * A format's reader lists a map's fields with a function that reads each, and the names of its
 * rules. Manifests of 0.1 and 1.x are lenient CBOR, so repeated keys are found here; in zTensor 2,
 * which is deterministic, the CBOR reader finds them by their order. */
#ifndef ZT_FORMATS_ZT_FIELDS_H
#define ZT_FORMATS_ZT_FIELDS_H

#include "cbor/cbor_read.h"
#include "model/model_build.h"

/* A version's names for the rules that are applied here. */
struct zt_family_rules {
    const char *schema;
    const char *shape;
    /* The rules of zt_blob_check; NULL if it is not used. */
    const char *alignment;
    const char *bounds;
    /* Names of objects and components, and keys of attributes, must have 1 to 1024 bytes without
     * NUL. NULL if any text is allowed. */
    const char *name;
};

/* A field whose value is about to be read. */
struct zt_field {
    const struct zt_map_field *entry;
    struct zt_cbor_reader *reader;
    const struct zt_family_rules *rules;
    uint64_t offset; /* absolute position of the value's head, or of the tags before it */
};

#define ZT_FIELD_REQUIRED 1u
#define ZT_FIELD_NULLABLE 2u /* null means that the field is absent */

struct zt_map_field {
    const char *key;
    unsigned flags;
    /* Reads the whole value. */
    enum zt_status (*read)(void *context, const struct zt_field *field, struct zt_error *error);
    size_t at; /* for zt_field_read_uint and zt_field_read_text: output offset in the context */
};

struct zt_map_schema {
    const char *what; /* "the root", for messages */
    const struct zt_family_rules *rules;
    const struct zt_map_field *fields;
    unsigned count; /* at most 32 */
    /* Called with each unknown field, its encoded key and value; may be NULL. */
    enum zt_status (*pass)(void *context, struct zt_text pair, struct zt_error *error);
};

/* Reads the whole map that is next in the reader. Rules: schema (for a missing field at the offset
 * of the map), CborDuplicateKey (at the offset of the key). */
enum zt_status zt_map_read(struct zt_cbor_reader *reader, const struct zt_map_schema *schema,
                           void *context, struct zt_error *error);

/* Rejects a manifest whose first byte begins neither an item of the given major type (RFC 8949
 * section 3.1) nor a tag. Called before the rest is read, because a file may declare a manifest of
 * 1 GiB. Rule schema, at the manifest, and fault is the message. */
#define ZT_CBOR_MAJOR_ARRAY 4
#define ZT_CBOR_MAJOR_MAP   5
enum zt_status zt_manifest_check_start(struct zt_source *source, uint64_t offset, unsigned major,
                                       const char *fault, const struct zt_family_rules *rules,
                                       struct zt_error *error);

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

/* Functions for zt_map_field.read. They store the value at offset entry->at of the context, as a
 * uint64_t or a struct zt_placed_text. */
enum zt_status zt_field_read_uint(void *context, const struct zt_field *field,
                                  struct zt_error *error);
enum zt_status zt_field_read_text(void *context, const struct zt_field *field,
                                  struct zt_error *error);

/* Fails with the schema rule and a message that the field is not what is wanted ("a text"). */
enum zt_status zt_field_fail(const struct zt_field *field, const char *wanted,
                             struct zt_error *error);

/* Adds the dimensions in an array to the object added last. Rule shape: more than 64 dimensions. */
enum zt_status zt_field_dimensions(const struct zt_field *field, struct zt_builder *builder,
                                   struct zt_error *error);
/* Like zt_field_dimensions, with rule shape also for a product that does not fit in 64 bits. */
enum zt_status zt_field_shape(const struct zt_field *field, struct zt_builder *builder,
                              struct zt_error *error);

/* Reads a map from arbitrary names to values: calls read with each key, to read the whole value.
 * Repeated names are left to the model's builder. */
enum zt_status zt_field_entries(const struct zt_field *field,
                                enum zt_status (*read)(void *context,
                                                       const struct zt_cbor_item *key,
                                                       struct zt_error *error),
                                void *context, struct zt_error *error);

/* Reads a map with text keys; *out_span is the encoded map without the tags before it. */
enum zt_status zt_field_attributes(const struct zt_field *field, struct zt_text *out_span,
                                   struct zt_error *error);

/* Checks a key by the name rule. */
enum zt_status zt_name_check(const struct zt_cbor_item *key, const struct zt_family_rules *rules,
                             struct zt_error *error);

/* --- blobs of zTensor 0.1 and 1.x --- */

/* Rejects a blob that is not aligned to 64 bytes or not between the head of 64 bytes and the
 * manifest. The error's offset is the blob's. */
enum zt_status zt_blob_check(const struct zt_component *component, const struct zt_model *model,
                             const struct zt_family_rules *rules, struct zt_error *error);

#endif
