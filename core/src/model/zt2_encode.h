/* A zTensor 2 model's objects as deterministic CBOR, piece by piece: for manifests and content
 * digests.
 *
 * Each piece is one object, so that a manifest of any length is compared or hashed without a second
 * copy of it. */
#ifndef ZT_MODEL_ZT2_ENCODE_H
#define ZT_MODEL_ZT2_ENCODE_H

#include "cbor/cbor_write.h"
#include "zt/model.h"
#include "zt/sink.h"

/* What is encoded of an object: everything, or only what it means, without where its bytes are. */
enum zt2_view { ZT2_VIEW_MANIFEST, ZT2_VIEW_CONTENT };

/* Encodes the map of objects into the sink, in the order of deterministic CBOR. Every part must
 * have a digest and, for ZT2_VIEW_MANIFEST, be in the model's own file. ZT_NO_MEMORY, or the sink's
 * failure. */
enum zt_status zt2_encode_objects(const struct zt_model *model, enum zt2_view view,
                                  const struct zt_sink *sink, struct zt_error *error);

#endif
