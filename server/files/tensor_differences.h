/* Compares the tensors of two models, files or URLs, by name. */
#ifndef FILES_TENSOR_DIFFERENCES_H
#define FILES_TENSOR_DIFFERENCES_H

#include "files/opened_file.h"
#include "terminal/progress_line.h"
#include "zt/statistics.h"

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

struct tensor_differences;

/* Opens both models: the one before, and the one after the changes. Fails as opened_file_open does,
 * for *out_path. The caller frees the differences. */
enum zt_status tensor_differences_open(const char *const paths[2],
                                       struct tensor_differences **out_differences,
                                       const char **out_path, struct zt_error *error);
/* Accepts NULL. */
void tensor_differences_free(struct tensor_differences *differences);

const struct zt_model *tensor_differences_before(const struct tensor_differences *differences);
const struct zt_model *tensor_differences_after(const struct tensor_differences *differences);

/* Compares all tensors, sorted by name. Digests come first: only tensors whose digests are unknown
 * or differ are read. The line counts the stored bytes of the second model. ZT_NO_MEMORY. */
enum zt_status tensor_differences_find(struct tensor_differences *differences,
                                       struct progress_line *line, struct zt_error *error);

/* All tensors, the equal ones too. */
const struct tensor_difference *tensor_differences_all(const struct tensor_differences *differences,
                                                       uint32_t *out_count);

/* The component with an object's elements, or its first one; NULL: it has none. */
const struct zt_component *tensor_component(const struct zt_model *model,
                                            const struct zt_object *object);

#endif
