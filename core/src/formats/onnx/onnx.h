/* ONNX: declarations that its five files share. onnx.c detects the format and walks model and graph
 * for onnx_reader.c, onnx_wire.c reads fields of protobuf's wire format, onnx_tensor.c reads the
 * initializers, and onnx_external.c reads where their bytes lie in other files. */
#ifndef ZT_FORMATS_ONNX_ONNX_H
#define ZT_FORMATS_ONNX_ONNX_H

#include "bytes/cursor.h"
#include "formats/formats.h"
#include "model/model_build.h"

#define ONNX_BOUNDS         "onnx §Wire Bounds"
#define ONNX_DUPLICATE_NAME "onnx §Tensor DuplicateName"

/* Reads a message into a model, whose manifest it is without its data (zt_builder_extend). */
enum zt_status onnx_read(struct zt_source *source, struct zt_builder *builder,
                         struct zt_error *error);

/* The longest name of a file on Linux. */
#define ONNX_LOCATION_MAX 255

/* Of a SHA-1 in hexadecimal. */
#define ONNX_CHECKSUM_MAX 40

struct onnx_reading {
    struct zt_source *source;
    struct zt_cursor cursor;
    struct zt_builder *builder;
    struct zt_hasher *hasher; /* of what is read of the message; NULL while it is being detected */
    struct onnx_location *locations; /* of external data (onnx_external.c) */
    size_t location_count;
    size_t location_capacity;
};

/* --- the wire format --- */

/* Wire types. Groups (3 and 4) are not used by ONNX. */
enum onnx_wire { ONNX_VARINT, ONNX_FIXED64, ONNX_BYTES, ONNX_FIXED32 = 5 };

struct onnx_field {
    uint32_t number;
    enum onnx_wire wire;
    uint64_t at;     /* of the tag */
    uint64_t value;  /* of a varint */
    uint64_t offset; /* of the payload, absolute */
    uint64_t length; /* of the payload in bytes */
};

/* Reads the tag and the length, or the value of a varint, of the field that begins at the cursor in
 * a message that ends at end. The cursor is then at the payload of a field of bytes, and behind any
 * other field. */
enum zt_status onnx_field_next(struct onnx_reading *reading, uint64_t end,
                               struct onnx_field *out_field, struct zt_error *error);
/* Moves behind the field, from anywhere in it. */
enum zt_status onnx_field_leave(struct onnx_reading *reading, const struct onnx_field *field,
                                struct zt_error *error);
enum zt_status onnx_varint_next(struct onnx_reading *reading, uint64_t end, uint64_t *out_value,
                                struct zt_error *error);
/* Copies a field of bytes, at most ZT_CURSOR_TAKE_MAX of them. */
enum zt_status onnx_bytes_read(struct onnx_reading *reading, const struct onnx_field *field,
                               void *out_bytes, struct zt_error *error);
/* Checks that a field holds nothing but varints of at most 64 bits, and counts them. */
enum zt_status onnx_varints_count(struct onnx_reading *reading, const struct onnx_field *field,
                                  uint64_t *out_count, struct zt_error *error);

/* A field that a message may have, and what reads it. */
struct onnx_known_field {
    uint32_t number;
    enum onnx_wire wire;
    enum zt_status (*read)(void *context, const struct onnx_field *field, struct zt_error *error);
};

/* Reads the message in a field: calls read for each known field and passes over all others. Rule
 * "onnx §Wire Type" for a known field of another wire type. */
enum zt_status onnx_message_read(struct onnx_reading *reading, const struct onnx_field *message,
                                 const struct onnx_known_field *known, size_t known_count,
                                 void *context, struct zt_error *error);

/* --- the levels below the graph --- */

enum zt_status onnx_tensor_read(struct onnx_reading *reading, const struct onnx_field *field,
                                struct zt_error *error);

/* What a tensor's external_data says so far. */
struct onnx_external {
    char location[ONNX_LOCATION_MAX];
    size_t location_length;
    uint64_t offset;
    uint64_t length;
    uint64_t at; /* of the first entry; 0: there is none */
    char checksum[ONNX_CHECKSUM_MAX];
    size_t checksum_length;
    bool has_location, has_offset, has_length, has_checksum;
};

/* Reads one entry, a key and a value. */
enum zt_status onnx_external_read(struct onnx_reading *reading, const struct onnx_field *field,
                                  struct onnx_external *external, struct zt_error *error);
/* Checks the entries of a tensor of so many bytes, and gives the range's place: *out_location is
 * the number of its file, counted from 1. */
enum zt_status onnx_external_place(struct onnx_reading *reading,
                                   const struct onnx_external *external, uint64_t bytes,
                                   uint32_t *out_location, struct zt_error *error);
/* Makes the model's shards of all locations, and has the components refer to them. */
enum zt_status onnx_external_finish(struct onnx_reading *reading, struct zt_error *error);

#endif
