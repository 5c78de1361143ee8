/* Writes a model as several safetensors files and their index, like save_pretrained of
 * transformers: "<stem>-00001-of-00003.safetensors" and so on, and "<stem>.safetensors.index.json".
 *
 * No file appears before all have been written. The index appears last, because the parts are not a
 * model without it. */
#ifndef CONVERSION_SPLIT_OUTPUT_H
#define CONVERSION_SPLIT_OUTPUT_H

#include "zt/convert.h"

/* Assigns each object of a model to a part. */
struct split_plan {
    uint32_t *parts; /* indexed by the object's index in the source; parts count from 0 */
    uint32_t count;
    uint64_t total_bytes; /* of all tensors */
};

/* Reads a size such as "5GB", "500MB", "2GiB" or "1000000": at least 1 byte. */
bool split_size_read(const char *text, uint64_t *out_bytes);

/* Fills parts one after another, in the order of the tensors in the source's files, while their
 * tensors have at most part_bytes; a larger tensor gets a separate part. The projection must be the
 * source's. Returns ZT_LIMIT if there would be more than ZT_PARTS_MAX parts; ZT_NO_MEMORY. */
enum zt_status split_plan_make(const struct zt_model *source,
                               const struct zt_projection *projection, uint64_t part_bytes,
                               struct split_plan *out_plan, struct zt_error *error);
void split_plan_free(struct split_plan *plan);

/* The path of a part, which counts from 0, or of the index, whose number is the count; path is the
 * path of a single file. The caller frees it; NULL without memory. */
char *split_output_path(const char *path, uint32_t number, uint32_t count);

/* The handling of existing files. */
struct split_replacing {
    bool is_refused;   /* writing then fails as output_file_publish does */
    bool has_happened; /* set if a file was replaced */
};

/* Writes the parts and the index; path is the path of a single file. whole is the conversion into
 * one safetensors file. Fails as zt_model_convert and output_file_open do. *out_failed is the path
 * of the file that could not be written, which the caller frees; NULL if the source is at fault. On
 * failure no new file remains, and no older file has changed. */
enum zt_status split_output_write(const struct split_plan *plan, const struct zt_conversion *whole,
                                  const char *path, struct split_replacing *replacing,
                                  char **out_failed, struct zt_error *error);

#endif
