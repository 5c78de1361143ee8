/* Statistics of tensors that a model server computes, so that the tensors need not be fetched. */
#ifndef CLIENT_REMOTE_STATISTICS_H
#define CLIENT_REMOTE_STATISTICS_H

#include <stdatomic.h>

#include "client/client.h"
#include "numbers/computation.h"
#include "zt/model.h"

struct remote_statistics {
    struct client *client; /* NULL: no server computes them */
    struct client_place place;
    char model_path[WEB_TARGET_SIZE]; /* of the API, encoded */
    atomic_bool is_over;              /* the server has no statistics at all */
};

/* Prepares for the model at a path or URL. No server computes statistics
 * for a path, or for the URL of a file. */
void remote_statistics_begin(struct remote_statistics *remote, const char *path);

struct remote_tensor {
    const struct zt_model *model;
    const struct zt_object *object;
    const struct zt_component *component; /* with the elements */
    unsigned bins;
};

/* Asks for the statistics of a tensor, from any thread. *out_text is the server's document, which
 * the caller frees. Returns false if they must be computed here; the error then has a reason,
 * unless its status is ZT_OK. */
bool remote_statistics_ask(struct remote_statistics *remote, const struct remote_tensor *tensor,
                           struct statistics *out_statistics, char **out_text,
                           struct zt_error *error);

#endif
