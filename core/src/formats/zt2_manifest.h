/* zTensor 2's manifest: from CBOR to a model under construction. Called by zt2.c alone. */
#ifndef ZT_FORMATS_ZT2_MANIFEST_H
#define ZT_FORMATS_ZT2_MANIFEST_H

#include "model/model_build.h"

/* zt_component.shard of a part whose shard is not in the table; zt2.c reports it once all of the
 * manifest has been read. */
#define ZT2_SHARD_UNDECLARED UINT32_MAX

/* Reads the manifest's bytes, which builder holds. ZT_INVALID for CBOR and schema faults, names and
 * ranks; what needs the model as a whole (placement, shards, products, layouts) is left to the
 * caller. */
enum zt_status zt2_manifest_read(struct zt_builder *builder, struct zt_error *error);

#endif
