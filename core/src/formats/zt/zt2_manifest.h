/* zTensor 2's manifest: reading it from CBOR into a model under construction. Called only by
 * zt2.c. */
#ifndef ZT_FORMATS_ZT_ZT2_MANIFEST_H
#define ZT_FORMATS_ZT_ZT2_MANIFEST_H

#include "model/model_build.h"

/* zt_component.shard of a part whose shard is not in the table. zt2.c reports it after the whole
 * manifest has been read. */
#define ZT2_SHARD_UNDECLARED UINT32_MAX

/* Reads the manifest's bytes, which builder holds. ZT_INVALID for faults of CBOR, schema, names and
 * ranks. Rules that need the whole model (placement, shards, products, layouts) are left to the
 * caller. */
enum zt_status zt2_manifest_read(struct zt_builder *builder, struct zt_error *error);

#endif
