/* The header of an NPY array (NumPy's format 1.0, 2.0 and 3.0): magic, version, length, and a
 * Python dict literal.
 *
 * Reads only what NumPy writes for arrays of numbers: the three keys in any order, strings without
 * escapes (also Python 2's u'…'), True and False, a tuple of whole numbers (also Python 2's "3L").
 * Nothing is evaluated. Rules: "npy §Header …". */
#ifndef ZT_NUMPY_NPY_HEADER_H
#define ZT_NUMPY_NPY_HEADER_H

#include <stdbool.h>

#include "model/model_build.h"
#include "zt/dtype.h"

/* Magic, version, and the length in 2 bytes (1.0) or 4 bytes (2.0 and later). */
#define NPY_PREAMBLE_MIN 10
#define NPY_PREAMBLE_MAX 12
/* Bound on the whole header. NumPy's own headers take a few hundred bytes, and NumPy refuses to
 * read texts above 10000. */
#define NPY_HEADER_MAX ((uint32_t)64 << 10)

/* The position of a header, for errors: its first byte or, in a deflated entry, the first byte of
 * the stream. */
struct npy_place {
    uint64_t offset;
    bool is_inflated;
    bool is_file; /* the header is that of a file, which may be cut off */
};

/* The rule that bytes break which do not begin as an array does. */
#define NPY_RULE_MAGIC "npy §Header Magic"

struct npy_header {
    uint32_t length_bytes; /* of the header; the data follows */
    uint64_t data_bytes;
    uint64_t shape[ZT_RANK_MAX];
    uint8_t rank;
    bool is_fortran;
    bool is_big_endian; /* and words are wider than a byte */
    enum zt_dtype dtype;
    enum zt_logical logical; /* complex numbers, or ZT_LOGICAL_NONE */
};

/* Reads the header's length from its first NPY_PREAMBLE_MAX bytes, or from all available_bytes if
 * there are fewer. Rules Magic, Version, HeaderBounds (the header does not fit into
 * available_bytes), HeaderTooLarge. */
enum zt_status npy_header_measure(const uint8_t *bytes, uint64_t available_bytes,
                                  const struct npy_place *place, uint32_t *out_length,
                                  struct zt_error *error);

/* Reads a whole header; length is the one that npy_header_measure returned. ZT_UNSUPPORTED for
 * dtypes other than numbers and bool (objects, texts, times, structures). */
enum zt_status npy_header_read(const uint8_t *bytes, uint32_t length, const struct npy_place *place,
                               struct npy_header *out_header, struct zt_error *error);

/* Adds the dense object that the header describes, with its component "data" stored raw at offset.
 * The component's arrangement is in the model's arena; npy_attach_shapes completes it. */
enum zt_status npy_array_add(const struct npy_header *header, struct zt_text name, uint64_t offset,
                             struct zt_builder *builder, struct zt_error *error);

/* Points the arrangements of all components to their shapes. Called once the builder has
 * finished. */
void npy_attach_shapes(struct zt_model *model);

#endif
