/* Paths of indices (zt/join.h) with a variant in their names, which from_pretrained's "variant"
 * requests: "m.safetensors.index.fp16.json" or "m.safetensors.fp16.index.json", and the same with
 * "bin". Their model is "m.fp16". */
#ifndef STORE_VARIANT_INDEX_H
#define STORE_VARIANT_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "zt/text.h"

/* The number of spellings of one name, and the rank of the first. These ranks follow the ranks of
 * model_extension. */
#define VARIANT_INDEX_FORMS 4
#define VARIANT_INDEX_RANK  13U

struct variant_index {
    struct zt_text stem; /* with folders; stem and variant are borrowed from the path */
    struct zt_text variant;
    unsigned form;
};

/* Parses a path, in upper or lower case. Returns false if it is not such an index. */
bool variant_index_read(struct zt_text path, struct variant_index *out_index);

/* Returns true if the rank (store.h) is an index with a variant. */
bool variant_index_has_rank(unsigned rank);

#endif
