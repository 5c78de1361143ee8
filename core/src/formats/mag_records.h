/* The records of a .mag file of version 1, in its two layouts: M1, which the specification
 * describes, and M2, which magnetron 0.1.2 wrote. Header and metadata are the same in both. Rules
 * "mag §…". */
#ifndef ZT_FORMATS_MAG_RECORDS_H
#define ZT_FORMATS_MAG_RECORDS_H

#include "formats/mag_cursor.h"
#include "model/model_build.h"

#define MAG_HEADER_BYTES 24
#define MAG_CHECKSUM_AT  8
#define MAG_RESERVED_AT  20
/* This library's bound on header and records, as zTensor has for its manifest. */
#define MAG_RECORDS_MAX (1ull << 30)

struct mag_header {
    uint32_t version;
    uint32_t checksum;
    uint32_t tensor_count;
    uint32_t metadata_count;
    uint32_t reserved;
};

/* What the first byte of a metadata record's aux says of its payload. */
enum mag_payload { MAG_OPAQUE, MAG_I64, MAG_F64 };

struct mag_metadata {
    uint64_t key_at; /* absolute */
    uint32_t key_length;
    enum mag_payload kind;
    uint64_t payload;
};

/* A tensor's record in any of the layouts. */
struct mag_tensor {
    uint64_t key_at; /* from the manifest's beginning */
    uint32_t key_length;
    uint8_t rank;
    enum zt_dtype dtype;
    enum zt_logical logical; /* version 300 */
    uint64_t shape[ZT_RANK_MAX];
    uint64_t offset; /* absolute */
    uint64_t length;
};

/* Is told each record in turn, or nothing where it is NULL. */
struct mag_visitor {
    enum zt_status (*metadata)(void *context, const struct mag_metadata *metadata,
                               struct zt_error *error);
    enum zt_status (*tensor)(void *context, const struct mag_tensor *tensor,
                             struct zt_error *error);
    void *context;
};

struct mag_layout {
    const char *name;    /* for messages */
    uint32_t record_min; /* the shortest tensor record */
    bool has_opaque;     /* metadata may be of no type */
    /* Reads a record; the key is left to mag_key_read. */
    enum zt_status (*tensor)(struct mag_cursor *cursor, struct mag_tensor *out_tensor,
                             struct zt_error *error);
};

extern const struct mag_layout mag_m1;
extern const struct mag_layout mag_m2;

enum zt_status mag_header_read(struct zt_source *source, struct mag_header *out_header,
                               struct zt_error *error);

/* Walks all records from the header's end and checks each; *out_end is where they end. */
enum zt_status mag_records_walk(const struct mag_layout *layout, const struct mag_header *header,
                                struct zt_source *source, const struct mag_visitor *visitor,
                                uint64_t *out_end, struct zt_error *error);

/* A key and its length before it: 1 to 65535 bytes of UTF-8 without NUL. */
enum zt_status mag_key_read(struct mag_cursor *cursor, uint64_t *out_at, uint32_t *out_length,
                            struct zt_error *error);
enum zt_status mag_key_check(const uint8_t *bytes, size_t length, uint64_t at,
                             struct zt_error *error);

/* Product of the shape times the dtype's width. Rule "mag §Tensors Shape", at the position given.
 */
enum zt_status mag_tensor_bytes(const struct mag_tensor *tensor, uint64_t at, uint64_t *out_bytes,
                                struct zt_error *error);

/* Adds a dense object of one component "data"; its name is in the manifest. */
enum zt_status mag_tensor_add(struct zt_builder *builder, const struct mag_tensor *tensor,
                              struct zt_error *error);

#endif
