/* PyTorch files: what the two readers (ZIP archives, and the stacked pickles of before 1.6) share.
 *
 * The pickle says which tensors there are and where each is in its storage (pickle/); the readers
 * find the storages' bytes; pytorch_tree.c names the tensors by their paths in what was saved;
 * pytorch_tensor.c adds them to the model. Rules: "pt §…". */
#ifndef ZT_FORMATS_PYTORCH_PYTORCH_H
#define ZT_FORMATS_PYTORCH_PYTORCH_H

#include "formats/formats.h"
#include "pickle/pickle.h"

/* Containers around a tensor. */
#define PYTORCH_DEPTH_MAX 128

/* The bytes of a storage. */
struct pytorch_blob {
    uint64_t offset; /* absolute */
    uint64_t stored_length;
    uint64_t length; /* inflated */
    bool is_deflated;
    bool has_digest;
    uint32_t crc32;
};

struct pytorch_reading {
    struct zt_builder *builder;
    struct pickle pickle;
    bool is_big_endian;
    /* Finds the bytes of a storage by the number that pickle_storage_place has set. */
    void (*find)(const void *storages, uint32_t place, struct pytorch_blob *out_blob);
    const void *storages;
    uint64_t tensor_count;
    uint64_t names_bytes;
    uint64_t expanded_bytes; /* of tensors that are larger than their storage */
    char *names_at;          /* room in the arena for names and digests */
    size_t names_left;
};

/* Gives the model's arrays and arena what the pickle's values and other_bytes leave of the memory
 * that a manifest of manifest_bytes may take. */
void pytorch_set_budget(struct pytorch_reading *reading, uint64_t manifest_bytes,
                        uint64_t other_bytes);

/* Names all tensors in a value, adds them, and rejects names that occur twice. */
enum zt_status pytorch_tree_read(struct pytorch_reading *reading, pickle_value root,
                                 struct zt_error *error);

/* Rejects a key that occurs twice in a map, unless all values of the map are tensors. A map that it
 * was made of is read each time; reading stops after most_steps words. ZT_INVALID, ZT_NO_MEMORY. */
enum zt_status pytorch_keys_check(const struct pickle *pickle, pickle_value map,
                                  uint64_t most_steps, struct zt_error *error);

/* Adds one tensor, or a storage as a tensor of one dimension. */
enum zt_status pytorch_tensor_add(struct pytorch_reading *reading, struct zt_text name,
                                  pickle_value value, struct zt_error *error);

/* Copies a short text into the model's arena. */
enum zt_status pytorch_keep_text(struct pytorch_reading *reading, struct zt_text text,
                                 const char **out_bytes, struct zt_error *error);

/* The check of both readers. By then the names are in the arena, so it frees the manifest's
 * bytes. */
enum zt_status pytorch_drop_manifest(void *state, struct zt_model *model, struct zt_error *error);

#endif
