/* Encoding a zTensor 2 model's objects as deterministic CBOR in pieces, for manifests and content
 * digests.
 *
 * Each piece is one object, so that a manifest of any length can be compared or hashed without a
 * second copy in memory. */
#ifndef ZT_MODEL_ZT2_ENCODE_H
#define ZT_MODEL_ZT2_ENCODE_H

#include "cbor/cbor_write.h"
#include "zt/model.h"
#include "zt/sink.h"

/* Whether to encode everything about an object, or only its content without the places of its
 * bytes. */
enum zt2_view { ZT2_VIEW_MANIFEST, ZT2_VIEW_CONTENT };

/* Encodes the map of objects into the sink, in the order of deterministic CBOR. Every part must
 * have a digest and, for ZT2_VIEW_MANIFEST, be in the model's own file. ZT_NO_MEMORY, or the sink's
 * status. */
enum zt_status zt2_encode_objects(const struct zt_model *model, enum zt2_view view,
                                  const struct zt_sink *sink, struct zt_error *error);

#endif
