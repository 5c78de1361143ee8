/* .mag: declarations that the readers of its variants share.
 *
 * Version 1 has two layouts: M1, which the specification describes, and M2, which magnetron 0.1.2
 * wrote. They share header and metadata but differ in their tensor records. Versions 100 and 200
 * are snapshots (magnetron 0.1.5 and 0.1.6, 0.1.7 to 0.1.9), version 300 has a manifest in JSON
 * (magnetron 0.2). Rules "mag §…". */
#ifndef ZT_FORMATS_MAG_MAG_H
#define ZT_FORMATS_MAG_MAG_H

#include "bytes/cursor.h"
#include "formats/attribute_list.h"
#include "model/model_build.h"

#define MAG_HEADER_BYTES 24
#define MAG_CHECKSUM_AT  8
#define MAG_RESERVED_AT  20
/* A snapshot's header and the tag of its first section. */
#define MAG_SNAPSHOT_HEAD_BYTES 36
/* This library's bound on header and records, the same as for a zTensor manifest. */
#define MAG_RECORDS_MAX (1ull << 30)
#define MAG_KEY_MAX     65535

#define MAG_VERSION_1   1
#define MAG_VERSION_100 100
#define MAG_VERSION_200 200
#define MAG_VERSION_300 300

struct mag_header {
    uint32_t version;
    uint32_t checksum;
    uint32_t tensor_count;
    uint32_t metadata_count;
    uint32_t reserved;
};

enum zt_status mag_header_read(struct zt_source *source, struct mag_header *out_header,
                               struct zt_error *error);

/* --- the records of version 1 --- */

struct mag_layout {
    const char *name;    /* for messages */
    uint32_t record_min; /* length in bytes of the shortest tensor record */
    bool has_opaque;     /* metadata may be without a type */
    enum zt_status (*read_tensor)(struct zt_cursor *cursor, struct zt_tensor *out_tensor,
                                  struct zt_error *error);
};

extern const struct mag_layout mag_m1;
extern const struct mag_layout mag_m2;

/* Walks and checks all records in the file; *out_end is the position of their end. */
enum zt_status mag_records_measure(const struct mag_layout *layout, const struct mag_header *header,
                                   struct zt_source *source, uint64_t *out_end,
                                   struct zt_error *error);

/* Reads the records, which are the builder's manifest, into the model. */
enum zt_status mag_records_read(const struct mag_layout *layout, const struct mag_header *header,
                                struct zt_builder *builder, struct zt_error *error);

/* --- names and sizes --- */

/* Checks a key: 1 to MAG_KEY_MAX bytes of UTF-8 without NUL. at is its position. */
enum zt_status mag_key_check(struct zt_text key, uint64_t at, struct zt_error *error);

/* The product of the shape times the dtype's width. Rule "mag §Tensors Shape", at the given
 * position. */
enum zt_status mag_tensor_bytes(const struct zt_tensor *tensor, uint64_t at, uint64_t *out_bytes,
                                struct zt_error *error);

/* --- other versions --- */

/* Whether a file of version 100 or 200 is a snapshot, by the tag of its first section. head holds
 * MAG_SNAPSHOT_HEAD_BYTES. */
bool mag_is_snapshot(const uint8_t *head);
enum zt_status mag_snapshot_open(uint32_t version, struct zt_source *source,
                                 struct zt_model **out_model, struct zt_error *error);

/* Sets dtype and logical type by the numbers of versions 200 and 300. False: no such number. */
bool mag_type_find(uint64_t number, struct zt_tensor *tensor);
enum zt_status mag_json_open(struct zt_source *source, struct zt_model **out_model,
                             struct zt_error *error);

#endif
