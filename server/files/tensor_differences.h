/* Compares the tensors of two models, files or URLs, by name. */
#ifndef FILES_TENSOR_DIFFERENCES_H
#define FILES_TENSOR_DIFFERENCES_H

#include "files/opened_file.h"
#include "terminal/progress_line.h"
#include "zt/statistics.h"

struct json_t;

/* UNREAD: it could not be compared. */
enum tensor_change {
    TENSOR_EQUAL,
    TENSOR_CHANGED,
    TENSOR_RETYPED,
    TENSOR_RESHAPED,
    TENSOR_GONE,
    TENSOR_NEW,
    TENSOR_UNREAD,
    TENSOR_CHANGES
};

struct tensor_difference {
    const struct zt_object *before; /* NULL: NEW */
    const struct zt_object *after;  /* NULL: GONE */
    enum tensor_change change;
    struct zt_difference numbers; /* count 0: there are none */
    struct zt_error *error;       /* of UNREAD; NULL: out of memory */
};

/* One of the two models. */
struct compared_model {
    const char *path;
    struct opened_file file;
    struct json_t **manifests; /* the servers', of each file of a remote model; else NULL */
};

/* Fails as opened_file_open does. The caller closes the model. */
enum zt_status compared_model_open(struct compared_model *model, struct zt_error *error);
void compared_model_close(struct compared_model *model);

struct tensor_differences {
    struct compared_model before;
    struct compared_model after;
    struct progress_line *line; /* counts the stored bytes of the second model */
    struct tensor_difference *items;
    uint32_t count;
};

/* Compares all tensors, sorted by name. Digests come first: only tensors whose digests are unknown
 * or differ are read. ZT_NO_MEMORY. */
enum zt_status tensor_differences_find(struct tensor_differences *differences,
                                       struct zt_error *error);
void tensor_differences_free(struct tensor_differences *differences);

/* The component with an object's elements, or its first one; NULL: it has none. */
const struct zt_component *tensor_component(const struct zt_model *model,
                                            const struct zt_object *object);

#endif
