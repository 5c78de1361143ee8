/* A view: the safetensors files that a model of another format would have as safetensors, one or
 * several with an index. They are virtual: an export makes their bytes on request. */
#ifndef VIEWS_MODEL_VIEW_H
#define VIEWS_MODEL_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json_write.h"
#include "base/server.h"
#include "derived/export_plan.h"
#include "store/store.h"

/* Raise this when a change gives the same model different files. */
#define MODEL_VIEW_REVISION 1

/* Maximum number of parts. Larger models get larger parts. */
#define VIEW_PARTS_MAX 1000
/* The part number of the index of a view with several parts. */
#define VIEW_INDEX UINT32_MAX
/* The name of a file, and NUL. */
#define VIEW_NAME_SIZE (MODEL_PATH_SIZE + 32)

/* One file: some objects, in the model's order. */
struct view_part {
    uint32_t first;
    uint32_t count; /* 0: all */
    uint64_t length;
};

/* Immutable and reference-counted. */
struct model_view {
    atomic_uint references;
    char *path; /* of the model's file, below the root */
    char *stem; /* of the names of the view's files */
    struct file_identity identity;
    /* Of the model. A file that is written twice within a tick of the clock, or a store that gives
     * other bytes for the same version, keeps its identity. */
    uint64_t manifest_hash;
    /* 0 if safetensors cannot represent the model, or the file is not a model. */
    uint32_t part_count;
    struct view_part *parts;
    /* For several parts. */
    uint64_t index_length;
    uint8_t index_sha256[32];
};

/* Returns true if a file of this name can have a view: a model in one file, in a format whose
 * tensors safetensors can represent. */
bool model_view_is_of(const char *path);

/* Returns true if the catalog knows another manifest of the same version of the file, so that the
 * view must be made again. */
bool model_view_is_outdated(const struct server *server, const struct model_view *view);

/* Opens a model and plans its files. Models without a view get an empty one, so that they need not
 * be opened again. On a worker. Returns ZT_UNAVAILABLE if the store is away or the file was
 * replaced; ZT_NO_MEMORY. */
enum zt_status model_view_make(struct server *server, const char *path, const char *stem,
                               const struct file_identity *identity, struct model_view **out_view,
                               struct zt_error *error);

struct model_view *model_view_hold(struct model_view *view);
/* Accepts NULL. */
void model_view_release(struct model_view *view);

/* Writes the name of a part or the index, in the model's folder. */
void model_view_name(const struct model_view *view, uint32_t part, char out_name[VIEW_NAME_SIZE]);

/* Returns the export that makes the bytes of a part. */
struct export_query model_view_query(const struct model_view *view, uint32_t part);

/* Writes the text of the index. The view must have been made from this generation. */
void model_view_write_index(const struct model_view *view, const struct generation *generation,
                            struct json *json);

/* Returns true if the generation is the version from which the view was made. */
bool model_view_is_from(const struct model_view *view, const struct generation *generation);

#endif
