/* The maps of zTensor 0.1 and 1.x manifests: known fields in any order, unknown ones passed over,
 * none twice.
 *
 * A reader describes each map by a schema and is called for each known field; what is common to
 * both families (typed values, shapes, attributes, where a blob may lie) is here, under the
 * family's own rule names. */
#ifndef ZT_FORMATS_FIELDS_H
#define ZT_FORMATS_FIELDS_H

#include "base/little_endian.h"
#include "cbor/cbor_read.h"
#include "model/model_build.h"

/* What a family calls the rules that this file applies. */
struct zt_family_rules {
    const char *schema;
    const char *shape;
    const char *alignment;
    const char *bounds;
};

/* A field's value, about to be read. */
struct zt_field {
    unsigned number; /* in the schema's names */
    const char *name;
    const struct zt_family_rules *rules;
    uint64_t offset; /* absolute: of the value's head */
};

#define ZT_FIELD_NAME(text)    \
    {                          \
        text, sizeof(text) - 1 \
    }

struct zt_map_schema {
    const char *what; /* "the root", for messages */
    const struct zt_family_rules *rules;
    const struct zt_text *names;
    unsigned count;    /* at most 32 */
    uint32_t required; /* bit n: names[n] must be there */
    /* Reads the value of a known field whole. */
    enum zt_status (*take)(void *context, const struct zt_field *field, struct zt_error *error);
    /* Is given each unknown field as encoded, key and value, or NULL. */
    enum zt_status (*pass)(void *context, struct zt_text pair, struct zt_error *error);
};

/* Reads the map at the reader whole. Rules: schema, CborDuplicateKey (offset of the key), schema
 * for a missing field (offset of the map). */
enum zt_status zt_map_read(struct zt_cbor_reader *reader, const struct zt_map_schema *schema,
                           void *context, struct zt_error *error);

struct zt_named_entries {
    /* Reads the value of one entry whole. */
    enum zt_status (*take)(void *context, struct zt_text name, struct zt_error *error);
    void *context;
};

/* Reads a map from any names to values. Names that occur twice are left to the model's builder. */
enum zt_status zt_field_entries(struct zt_cbor_reader *reader, const struct zt_field *field,
                                const struct zt_named_entries *entries, struct zt_error *error);

enum zt_status zt_field_uint(struct zt_cbor_reader *reader, const struct zt_field *field,
                             uint64_t *out_value, struct zt_error *error);
enum zt_status zt_field_text(struct zt_cbor_reader *reader, const struct zt_field *field,
                             struct zt_text *out_text, struct zt_error *error);
/* A text and the position of its head. */
struct zt_placed_text {
    struct zt_text text;
    uint64_t offset;
};
enum zt_status zt_field_placed_text(struct zt_cbor_reader *reader, const struct zt_field *field,
                                    struct zt_placed_text *out_text, struct zt_error *error);
/* Passes over a null and says whether there was one: it means that the field is absent. */
bool zt_field_null(struct zt_cbor_reader *reader);
/* Refuses a manifest whose first byte begins neither an item of that major type (RFC 8949 section
 * 3.1) nor a tag, before all of it is read: what a file states can be a GiB of nothing. Rule
 * schema, at the manifest. */
#define ZT_CBOR_MAJOR_ARRAY 4
#define ZT_CBOR_MAJOR_MAP   5
enum zt_status zt_manifest_begins(struct zt_source *source, uint64_t offset, unsigned major,
                                  const struct zt_family_rules *rules, struct zt_error *error);

/* A map with text keys, as encoded, without the tags before it. */
enum zt_status zt_field_attributes(struct zt_cbor_reader *reader, const struct zt_field *field,
                                   struct zt_text *out_span, struct zt_error *error);
/* Adds the dimensions to the object added last. Rule shape: more than 64, or a product past 64
 * bits. */
enum zt_status zt_field_shape(struct zt_cbor_reader *reader, const struct zt_field *field,
                              struct zt_builder *builder, struct zt_error *error);

/* Sets what a component's encoding is; the decoded length is known for raw alone. Absent (no bytes)
 * is raw. */
void zt_component_set_encoding(struct zt_component *component, struct zt_text encoding);

/* Refuses stored bytes that are not aligned to 64, or not between the head of 64 bytes and the
 * manifest. The error's offset is the blob's. */
enum zt_status zt_blob_check(const struct zt_component *component, const struct zt_model *model,
                             const struct zt_family_rules *rules, struct zt_error *error);

/* Names object and component in an error that does not name any yet. */
void zt_error_within(struct zt_error *error, struct zt_text object, struct zt_text component);

#endif
