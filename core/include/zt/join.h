/* Models in several files: the parts of a model, and the one model that they are together.
 *
 * safetensors and PyTorch have an index next to the parts, a JSON file that names the part of each
 * tensor ("weight_map"; Hugging Face's save_pretrained). GGUF has none: each part says which one of
 * how many it is (split.no, split.count, split.tensors.count; llama.cpp's gguf-split). */
#ifndef ZT_JOIN_H
#define ZT_JOIN_H

#include "zt/model.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* More parts than any model has; each holds a descriptor. */
#define ZT_PARTS_MAX 1024
/* The longest index that is read, in bytes. */
#define ZT_INDEX_BYTES_MAX ((uint64_t)64 << 20)

/* --- the index --- */

/* A read index; immutable. */
struct zt_index;

/* Reads an index. ZT_INVALID with a rule "index §…" and an offset if it is not JSON, or no index;
 * if it names a file that is neither in its folder nor below it (an absolute path, one with "..", a
 * hidden file, an index), or the same tensor twice; ZT_LIMIT if it is longer than
 * ZT_INDEX_BYTES_MAX (the data is not read then) or names too many parts; ZT_NO_MEMORY, ZT_IO. The
 * source is borrowed for this call only. Freed with zt_index_free. */
enum zt_status zt_index_read(struct zt_source *source, struct zt_index **out_index,
                             struct zt_error *error);
/* Takes NULL. */
void zt_index_free(struct zt_index *index);

/* The names of the parts' files, each once, sorted bytewise: paths from the index's folder without
 * "." components. Borrowed from the index. */
const struct zt_text *zt_index_parts(const struct zt_index *index, size_t *out_count);

/* Room for the name of a part, with its NUL. */
#define ZT_PART_NAME_SIZE 256

/* How many parts "<stem>-00001-of-00003.<extension>" there are to be, if all parts that the index
 * names are called so and alike; 0 if they are not, or if there are more than ZT_PARTS_MAX. */
uint32_t zt_index_series(const struct zt_index *index);

/* The name of a part of the series, counted from 1, that the index does not name: if there is such
 * a file, it is superfluous. False if the index names it. The series has that many parts. */
bool zt_index_unnamed(const struct zt_index *index, uint32_t number,
                      char out_name[ZT_PART_NAME_SIZE]);

/* metadata.total_size in bytes, which many writers get wrong: reported, never trusted. False if the
 * index states none. */
bool zt_index_total_size(const struct zt_index *index, uint64_t *out_bytes);

/* --- parts that say themselves what they are --- */

/* Takes "<stem>-00001-of-00003" apart, as both families of writers name parts. False for any other
 * text; number counts from 1 and is at most count. */
bool zt_part_name_split(struct zt_text name, size_t *out_stem_length, uint32_t *out_number,
                        uint32_t *out_count);

/* What a GGUF part states of itself. False for a model that is not one of several parts. */
struct zt_gguf_split {
    uint32_t number; /* from 0 */
    uint32_t count;
    uint64_t tensor_count; /* of all parts together */
};
bool zt_gguf_split_of(const struct zt_model *model, struct zt_gguf_split *out_split);

/* A GGUF that states a split.count above 1 is not a whole model, so its file must be named as that
 * part of so many: name is the file's, without folders and with its extension. ZT_INVALID with the
 * rule "gguf §Split PartName" for any other name; ZT_OK for all other models. */
enum zt_status zt_gguf_check_name(const struct zt_model *model, struct zt_text name,
                                  struct zt_error *error);

/* --- joining --- */

struct zt_part {
    struct zt_text name;            /* the file's path from the folder of the model's own file */
    const struct zt_model *model;   /* borrowed for the call */
    const struct zt_source *source; /* likewise */
};

/* The model that the parts are together: the objects of all of them, each component in the shard
 * (ZT_SHARD_PART) that is its part; shards are sorted by name and have no digests. Format and
 * version are taken from the parts; attributes from the first part that has some, or of the first
 * part of a GGUF without the keys that make it a part. manifest_offset and manifest_length are
 * those of the own file; manifest_hash covers the index and each part's name, size and manifest.
 *
 * index: NULL for GGUF. own: the model's own file, which is the index or, for GGUF, the first part
 * (its components then have shard 0, and the shards are the other parts). parts: in any order, at
 * least one for GGUF, with names that all differ.
 *
 * ZT_INVALID with a rule "index §…" or "gguf §Split …" (docs/rules/parts.md) that names the part
 * and the tensor if a part is missing or superfluous, has a tensor that the index puts elsewhere or
 * does not name, lacks one that it should have, has another format than the rest, or two parts have
 * a tensor of the same name; ZT_LIMIT, ZT_NO_MEMORY. Freed with zt_model_free; it borrows
 * nothing. */
enum zt_status zt_model_join(const struct zt_index *index, struct zt_source *own,
                             const struct zt_part *parts, size_t part_count,
                             struct zt_model **out_model, struct zt_error *error);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
