/* Which models have a view, and how long its files are. */
#include "hub/model_view.h"

#include <stdlib.h>
#include <string.h>

#include "api/export_reply.h"
#include "catalog/catalog.h"
#include "catalog/split_path.h"
#include "derived/export_size.h"

bool model_view_is_of(const char *path)
{
    static const char *const extensions[] = {".zt", ".gguf", ".mag", ".npz"};
    char split[MODEL_PATH_SIZE];
    size_t name_length;
    unsigned rank;

    if (!model_path_split(path, &name_length, &rank) || model_path_is_odd(path) ||
        split_path_of_part(path, split))
        return false;
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (strcmp(model_extension(rank), extensions[i]) == 0)
            return true;
    return false;
}

bool model_view_is_from(const struct model_view *view, const struct generation *generation)
{
    /* Of a model with data in other files the identity does not tell all. */
    return generation->model != NULL && !generation->is_joined && generation->shards.count == 0 &&
           strcmp(generation->path, view->path) == 0 &&
           store_identity_equal(&generation->identity, &view->identity);
}

struct export_query model_view_query(const struct model_view *view, uint32_t part)
{
    return (struct export_query){.target = ZT_TARGET_SAFETENSORS,
                                 .prefix = {"", 0},
                                 .first = view->parts[part].first,
                                 .count = view->parts[part].count,
                                 .is_for_torch = true};
}

/* --- making --- */

static struct model_view *new_view(const char *path, const struct file_identity *identity)
{
    struct model_view *view = calloc(1, sizeof(*view));

    if (view == NULL)
        return NULL;
    atomic_init(&view->references, 1);
    view->identity = *identity;
    view->path = strdup(path);
    view->parts = calloc(1, sizeof(*view->parts));
    if (view->path != NULL && view->parts != NULL)
        return view;
    model_view_release(view);
    return NULL;
}

/* One file of the whole model, if safetensors can hold it. */
static enum zt_status lay_out(struct server *server, struct generation *generation,
                              struct model_view *view, struct zt_error *error)
{
    const struct export_query query = model_view_query(view, 0);
    enum zt_status status;

    if (generation->model->object_count == 0)
        return ZT_OK;
    status = export_size(server, generation, &query, &view->parts[0].length, error);
    if (status == ZT_OK)
        view->part_count = 1;
    return status == ZT_UNSUPPORTED ? ZT_OK : status;
}

static enum zt_status look_at(struct server *server, struct generation *generation,
                              struct model_view *view, struct zt_error *error)
{
    if (!store_identity_equal(&generation->identity, &view->identity))
        return zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the file is another by now");
    if (!model_view_is_from(view, generation))
        return ZT_OK;
    return lay_out(server, generation, view, error);
}

enum zt_status model_view_make(struct server *server, const char *path,
                               const struct file_identity *identity, struct model_view **out_view,
                               struct zt_error *error)
{
    struct model_view *view = new_view(path, identity);
    struct generation *generation;
    enum zt_status status;

    *out_view = NULL;
    if (view == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory for a view");
    generation = catalog_update(server->catalog, path);
    if (generation == NULL)
        status = zt_fail(error, ZT_UNAVAILABLE, NULL, ZT_NO_OFFSET, "the file cannot be opened");
    else
        status = look_at(server, generation, view, error);
    generation_release(generation);
    if (status == ZT_OK)
        *out_view = view;
    else
        model_view_release(view);
    return status;
}

struct model_view *model_view_hold(struct model_view *view)
{
    atomic_fetch_add(&view->references, 1);
    return view;
}

void model_view_release(struct model_view *view)
{
    if (view == NULL || atomic_fetch_sub(&view->references, 1) > 1)
        return;
    free(view->path);
    free(view->parts);
    free(view);
}
