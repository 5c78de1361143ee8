/* zTensor 2's manifest and content digest input, encoded from a model, piece by piece
 * (deterministic CBOR).
 *
 * The pieces are an object's own, so that a manifest of any length is compared or hashed without
 * holding it twice. */
#ifndef ZT_MODEL_ZT2_ENCODE_H
#define ZT_MODEL_ZT2_ENCODE_H

#include "cbor/cbor_write.h"
#include "zt/model.h"

/* What an encoded object tells: all of it, or what it means without saying where its bytes are. */
enum zt2_view { ZT2_VIEW_MANIFEST, ZT2_VIEW_CONTENT };

/* Called with each piece in turn; anything but ZT_OK stops. */
struct zt2_sink {
    enum zt_status (*take)(void *context, const void *bytes, size_t length);
    void *context;
};

/* Encodes the map of objects, in the order of deterministic CBOR. Every part must have a digest,
 * and for the manifest's view lie in the model's own file. ZT_NO_MEMORY, or what the sink gives
 * back. */
enum zt_status zt2_encode_objects(const struct zt_model *model, enum zt2_view view,
                                  const struct zt2_sink *sink);

#endif
