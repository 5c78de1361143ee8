/* A stored model of another format, as the safetensors files that it would be: one, or several with
 * an index. They are virtual: an export makes their bytes when they are asked for. */
#ifndef HUB_MODEL_VIEW_H
#define HUB_MODEL_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json_write.h"
#include "base/server.h"
#include "derived/export_plan.h"
#include "store/store.h"

/* To be raised when the files of the same model would be others. */
#define MODEL_VIEW_REVISION 1

/* Of one model. A model that would have more has larger ones. */
#define VIEW_PARTS_MAX 1000
/* The index of a view that has several parts, as if it were one more. */
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
    char *path; /* of the model's file, from the root */
    char *stem; /* of the names of the view's files */
    struct file_identity identity;
    /* 0: safetensors cannot hold the model, or the file is none. */
    uint32_t part_count;
    struct view_part *parts;
    /* If there are several parts. */
    uint64_t index_length;
    uint8_t index_sha256[32];
};

/* Whether a file of this name can have a view: a model of one file, in a format whose tensors
 * safetensors can hold. */
bool model_view_is_of(const char *path);

/* Opens a model and lays its files out; ones that have no view too, so that they need not be opened
 * again. On a worker. ZT_UNAVAILABLE: not now, or the file is another by now; ZT_NO_MEMORY. */
enum zt_status model_view_make(struct server *server, const char *path, const char *stem,
                               const struct file_identity *identity, struct model_view **out_view,
                               struct zt_error *error);

struct model_view *model_view_hold(struct model_view *view);
/* Takes NULL. */
void model_view_release(struct model_view *view);

/* What a part, or the index, is called, in the model's folder. */
void model_view_name(const struct model_view *view, uint32_t part, char out_name[VIEW_NAME_SIZE]);

/* The export that gives the bytes of a part. */
struct export_query model_view_query(const struct model_view *view, uint32_t part);

/* The text of the index, of the generation that the view is from. */
void model_view_write_index(const struct model_view *view, const struct generation *generation,
                            struct json *json);

/* Whether the generation is the version of the model that the view is of. */
bool model_view_is_from(const struct model_view *view, const struct generation *generation);

#endif
