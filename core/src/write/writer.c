/* The writer for all targets: it tracks which component is next and how many bytes that component
 * takes. zTensor 1.2 and 2 (not canonical) are written as streams, all other targets from a file
 * plan, piece by piece. */
#include "zt/writer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/locate.h"
#include "write/container_stream.h"

#define ZEROS_BYTES 65536
#define NOTHING     UINT32_MAX

struct zt_writer {
    const struct zt_projection *projection;
    struct zt_sink sink;
    struct zt_sink counted; /* counts bytes and passes them to sink; the stream's output */
    uint64_t length;
    /* Components in the order in which they must be written. */
    uint32_t *order;
    uint32_t order_count;
    uint32_t next;
    uint8_t *written; /* a flag for each component */
    uint32_t current; /* NOTHING if no component has been begun */
    uint64_t declared;
    uint64_t appended;
    /* Exactly one of plan and stream. */
    struct zt_file_plan *plan;
    struct zt_container_stream *stream;
    size_t piece; /* next piece of the plan to be written */
    enum zt_status failure;
};

static enum zt_status take_counted(void *context, const void *bytes, size_t length,
                                   struct zt_error *error)
{
    struct zt_writer *writer = context;
    enum zt_status status;

    assert(length > 0 && writer->failure == ZT_OK);
    status = writer->sink.take(writer->sink.context, bytes, length, error);
    if (status == ZT_OK)
        writer->length += length;
    return status;
}

/* Remembers a failure; no further writes are allowed. */
static enum zt_status remember(struct zt_writer *writer, enum zt_status status)
{
    if (status != ZT_OK)
        writer->failure = status;
    return status;
}

static enum zt_status fail_component(const struct zt_writer *writer, uint32_t component,
                                     struct zt_error *error, const char *message)
{
    const struct zt_model *outline = writer->projection->model;

    zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s", message);
    if (component < outline->component_count) {
        const struct zt_component *part = &outline->components[component];

        zt_error_at(error, zt_object_name(zt_component_owner(outline, part)),
                    zt_component_name(part));
    }
    return ZT_ARGUMENT;
}

static enum zt_status check_alive(const struct zt_writer *writer, struct zt_error *error)
{
    if (writer->failure == ZT_OK)
        return ZT_OK;
    return zt_fail(error, writer->failure, NULL, ZT_NO_OFFSET, "writing failed before");
}

/* --- the order --- */

static void order_by_pieces(struct zt_writer *writer)
{
    for (size_t i = 0; i < writer->plan->piece_count; i++) {
        const struct zt_piece *piece = &writer->plan->pieces[i];

        if (piece->is_component)
            writer->order[writer->order_count++] = piece->component;
    }
    assert(writer->order_count <= writer->projection->model->component_count);
}

static void order_by_names(struct zt_writer *writer)
{
    const struct zt_model *outline = writer->projection->model;

    for (uint32_t i = 0; i < outline->object_count; i++)
        for (uint32_t j = 0; j < outline->objects[i].component_count; j++)
            writer->order[writer->order_count++] = outline->objects[i].first_component + j;
    assert(writer->order_count <= outline->component_count);
}

/* --- writing a plan --- */

static enum zt_status put_zeros(struct zt_writer *writer, uint64_t end, struct zt_error *error)
{
    static const uint8_t zeros[ZEROS_BYTES] = {0};
    enum zt_status status = ZT_OK;

    assert(writer->length <= end);
    while (status == ZT_OK && writer->length < end) {
        uint64_t left = end - writer->length;

        status =
            take_counted(writer, zeros, left < ZEROS_BYTES ? (size_t)left : ZEROS_BYTES, error);
    }
    return status;
}

/* Writes up to the next component's place, or to the end. */
static enum zt_status write_pieces(struct zt_writer *writer, struct zt_error *error)
{
    const struct zt_file_plan *plan = writer->plan;
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && writer->piece < plan->piece_count) {
        const struct zt_piece *piece = &plan->pieces[writer->piece];

        status = put_zeros(writer, piece->offset, error);
        assert(status != ZT_OK || writer->length == piece->offset);
        if (piece->is_component)
            return status;
        if (status == ZT_OK)
            status =
                take_counted(writer, plan->added + piece->added_at, (size_t)piece->length, error);
        writer->piece++;
    }
    return status;
}

/* --- beginning --- */

static bool is_streamed(enum zt_target target)
{
    return target == ZT_TARGET_ZT1 || target == ZT_TARGET_ZT2;
}

static enum zt_status start(struct zt_writer *writer, const struct zt_writer_options *options,
                            struct zt_error *error)
{
    const struct zt_projection *projection = writer->projection;
    size_t count = projection->model->component_count;
    enum zt_status status;

    assert(writer->order == NULL && writer->written == NULL);
    writer->order = calloc(count + 1, sizeof(*writer->order));
    writer->written = calloc(count + 1, 1);
    if (writer->order == NULL || writer->written == NULL)
        return zt_fail_memory(error, "a writer");
    if (is_streamed(projection->target)) {
        order_by_names(writer);
        return zt_container_stream_begin(projection, options, &writer->counted, &writer->stream,
                                         error);
    }
    status = zt_file_plan_make(projection, options->fingerprints, &writer->plan, error);
    if (status != ZT_OK)
        return status;
    order_by_pieces(writer);
    return write_pieces(writer, error);
}

enum zt_status zt_writer_begin(const struct zt_projection *projection,
                               const struct zt_writer_options *options, const struct zt_sink *sink,
                               struct zt_writer **out_writer, struct zt_error *error)
{
    static const struct zt_writer_options defaults = {0};
    struct zt_writer *writer;
    enum zt_status status;

    options = options != NULL ? options : &defaults;
    if (options->zstd && !is_streamed(projection->target))
        return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET, "%s cannot hold zstd",
                       zt_target_name(projection->target));
    writer = calloc(1, sizeof(*writer));
    if (writer == NULL)
        return zt_fail_memory(error, "a writer");
    writer->projection = projection;
    writer->sink = *sink;
    writer->counted = (struct zt_sink){take_counted, writer};
    writer->current = NOTHING;
    status = start(writer, options, error);
    if (status != ZT_OK) {
        zt_writer_free(writer);
        return status;
    }
    *out_writer = writer;
    return ZT_OK;
}

/* --- components --- */

static enum zt_status end_component(struct zt_writer *writer, struct zt_error *error)
{
    if (writer->current == NOTHING)
        return ZT_OK;
    if (writer->declared != ZT_LENGTH_UNKNOWN && writer->appended < writer->declared)
        return fail_component(writer, writer->current, error, "fewer bytes than were declared");
    assert(writer->written[writer->current] == 1);
    writer->current = NOTHING;
    if (writer->stream != NULL)
        return zt_container_stream_end(writer->stream, error);
    writer->piece++;
    return write_pieces(writer, error);
}

bool zt_writer_next(const struct zt_writer *writer, uint32_t *out_component)
{
    uint32_t next = writer->next;

    while (next < writer->order_count && writer->written[writer->order[next]])
        next++;
    assert(next <= writer->order_count);
    if (next == writer->order_count)
        return false;
    *out_component = writer->order[next];
    return true;
}

static void step_past_written(struct zt_writer *writer)
{
    while (writer->next < writer->order_count && writer->written[writer->order[writer->next]])
        writer->next++;
}

static enum zt_status begin_component(struct zt_writer *writer, uint32_t component,
                                      struct zt_error *error)
{
    if (component >= writer->projection->model->component_count)
        return fail_component(writer, component, error, "there is no such component");
    if (writer->written[component])
        return fail_component(writer, component, error, "the component has already been written");
    if (writer->plan != NULL &&
        (writer->next == writer->order_count || writer->order[writer->next] != component))
        return fail_component(writer, component, error,
                              "a different component must be written first");
    assert(writer->current == NOTHING);
    writer->written[component] = 1;
    step_past_written(writer);
    writer->current = component;
    writer->appended = 0;
    assert(writer->plan == NULL || writer->plan->pieces[writer->piece].component == component);
    writer->declared = writer->plan != NULL
                           ? writer->plan->pieces[writer->piece].length
                           : writer->projection->model->components[component].decoded_length;
    return writer->stream != NULL ? zt_container_stream_component(writer->stream, component, error)
                                  : ZT_OK;
}

enum zt_status zt_writer_component(struct zt_writer *writer, uint32_t component,
                                   struct zt_error *error)
{
    enum zt_status status = check_alive(writer, error);

    if (status == ZT_OK)
        status = end_component(writer, error);
    if (status == ZT_OK)
        status = begin_component(writer, component, error);
    return remember(writer, status);
}

enum zt_status zt_writer_append(struct zt_writer *writer, const void *bytes, size_t length,
                                struct zt_error *error)
{
    enum zt_status status = check_alive(writer, error);

    if (status != ZT_OK || length == 0)
        return status;
    if (writer->current == NOTHING)
        return remember(writer,
                        fail_component(writer, NOTHING, error, "no component has been begun"));
    if (writer->declared != ZT_LENGTH_UNKNOWN && length > writer->declared - writer->appended)
        return remember(writer, fail_component(writer, writer->current, error,
                                               "more bytes than were declared"));
    writer->appended += length;
    assert(writer->appended <= writer->declared);
    if (writer->stream != NULL)
        return remember(writer, zt_container_stream_append(writer->stream, bytes, length, error));
    return remember(writer, take_counted(writer, bytes, length, error));
}

enum zt_status zt_writer_finish(struct zt_writer *writer, struct zt_error *error)
{
    uint32_t missing;
    enum zt_status status = check_alive(writer, error);

    if (status == ZT_OK)
        status = end_component(writer, error);
    if (status == ZT_OK && zt_writer_next(writer, &missing))
        status = fail_component(writer, missing, error, "a component is missing");
    if (status == ZT_OK && writer->stream != NULL)
        status = zt_container_stream_finish(writer->stream, error);
    assert(status != ZT_OK || writer->plan == NULL || writer->length == writer->plan->length);
    remember(writer, status);
    /* Any further call would damage the finished file. */
    if (status == ZT_OK)
        writer->failure = ZT_ARGUMENT;
    return status;
}

uint64_t zt_writer_length(const struct zt_writer *writer)
{
    return writer->length;
}

void zt_writer_free(struct zt_writer *writer)
{
    if (writer == NULL)
        return;
    zt_file_plan_free(writer->plan);
    zt_container_stream_free(writer->stream);
    free(writer->order);
    free(writer->written);
    free(writer);
}
