/* Reads exported components: seekable encodings frame by frame, views with ascending offsets from
 * the file, other encodings through the cache of decoded components. The component that was read
 * last stays open. */
#include "derived/export_bytes.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "derived/decoded.h"
#include "zt/decode.h"

#define NONE UINT32_MAX

struct export_bytes {
    struct server *server;
    struct generation *generation;
    const struct zt_cut *cut;
    bool to_f32;
    pthread_mutex_t lock; /* guards the members below */
    uint32_t component;   /* the open component, or NONE */
    struct zt_source *source;
    struct decoded *decoded; /* owner of source; NULL: source must be closed here */
};

struct export_bytes *export_bytes_new(struct server *server, struct generation *generation,
                                      const struct zt_cut *cut, bool to_f32)
{
    struct export_bytes *bytes = calloc(1, sizeof(*bytes));

    if (bytes == NULL)
        return NULL;
    bytes->server = server;
    bytes->generation = generation;
    bytes->cut = cut;
    bytes->to_f32 = to_f32;
    bytes->component = NONE;
    pthread_mutex_init(&bytes->lock, NULL);
    return bytes;
}

static void close_source(struct export_bytes *bytes)
{
    if (bytes->component == NONE)
        return;
    assert(bytes->source != NULL);
    bytes->component = NONE;
    if (bytes->decoded != NULL)
        memo_release(bytes->decoded);
    else
        zt_source_close(bytes->source);
    bytes->decoded = NULL;
    bytes->source = NULL;
}

void export_bytes_free(void *self)
{
    struct export_bytes *bytes = self;

    if (bytes == NULL)
        return;
    close_source(bytes);
    pthread_mutex_destroy(&bytes->lock);
    free(bytes);
}

/* --- decoded bytes --- */

static struct zt_source *file_of(const struct export_bytes *bytes,
                                 const struct zt_component *component)
{
    const struct zt_files files = generation_files(bytes->generation);

    return zt_files_source(&files, component);
}

/* The lock must be held. */
static enum zt_status open_source(struct export_bytes *bytes, uint32_t number,
                                  struct zt_error *error)
{
    const struct zt_component *component = &bytes->generation->model->components[number];
    struct zt_slice whole;
    enum zt_status status;

    if (bytes->component == number)
        return ZT_OK;
    close_source(bytes);
    if (zt_slice_of_view(NULL, component, &whole)) {
        status = zt_slice_source(&whole, file_of(bytes, component), component->offset,
                                 &bytes->source, error);
    } else if (component->encoding == ZT_ENCODING_ZSTD_SEEKABLE) {
        status = zt_frames_source(component, file_of(bytes, component), &bytes->source, error);
    } else {
        status =
            decoded_get(bytes->server->decoded, bytes->generation, number, &bytes->decoded, error);
        if (status == ZT_OK)
            bytes->source = bytes->decoded->source;
    }
    if (status == ZT_OK)
        bytes->component = number;
    return status;
}

static void make_view(const struct export_bytes *bytes, const struct export_origin *origin,
                      struct zt_slice *slice, struct zt_component_view *out_view)
{
    const struct zt_model *model = bytes->generation->model;

    *out_view = (struct zt_component_view){.widening = origin->widening};
    if (bytes->cut != NULL && origin->axis != ZT_AXIS_NONE) {
        const struct zt_cut cut = {bytes->cut->part, bytes->cut->parts, origin->axis};

        zt_object_cut(model, &model->objects[origin->object], &cut, bytes->to_f32, slice);
        out_view->cut = slice;
    }
}

static enum zt_status name_failure(const struct export_bytes *bytes,
                                   const struct export_origin *origin, enum zt_status status,
                                   struct zt_error *error)
{
    const struct zt_model *model = bytes->generation->model;

    if (status != ZT_OK)
        zt_error_at(error, zt_object_name(&model->objects[origin->object]),
                    zt_component_name(&model->components[origin->component]));
    return status;
}

enum zt_status export_bytes_read(struct export_bytes *bytes, const struct export_origin *origin,
                                 uint64_t offset, struct export_buffer buffer,
                                 struct zt_error *error)
{
    const struct zt_component *component = &bytes->generation->model->components[origin->component];
    struct zt_slice slice;
    struct zt_component_view from;
    enum zt_status status;

    assert(error != NULL && origin->object < bytes->generation->model->object_count);
    make_view(bytes, origin, &slice, &from);
    if (zt_component_is_plain(component)) {
        from.source = file_of(bytes, component);
        from.base = component->offset;
        status = zt_component_view_read(&from, offset, buffer.at, buffer.length, error);
        return name_failure(bytes, origin, status, error);
    }
    /* One lock suffices: concurrent readers of one export would only close each other's source. */
    pthread_mutex_lock(&bytes->lock);
    status = open_source(bytes, origin->component, error);
    from.source = bytes->source;
    if (status == ZT_OK)
        status = zt_component_view_read(&from, offset, buffer.at, buffer.length, error);
    pthread_mutex_unlock(&bytes->lock);
    return name_failure(bytes, origin, status, error);
}

bool export_bytes_stored(const struct export_bytes *bytes, const struct export_origin *origin,
                         struct zt_source **out_source, uint64_t *out_offset)
{
    const struct zt_component *component = &bytes->generation->model->components[origin->component];
    struct zt_slice slice;
    struct zt_component_view from;

    if (!zt_component_is_plain(component) || origin->widening.to_width > 0 ||
        origin->widening.widener != NULL)
        return false;
    make_view(bytes, origin, &slice, &from);
    if (from.cut != NULL && !zt_slice_is_contiguous(&slice))
        return false;
    *out_source = file_of(bytes, component);
    *out_offset = component->offset + (from.cut != NULL ? slice.offset : 0);
    return true;
}
