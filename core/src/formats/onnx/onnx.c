/* ONNX: detecting the format, and the model and its graph (onnx.proto, ModelProto and GraphProto).
 *
 * A message has no magic and is walked where it lies, without what its nodes and its data take. The
 * walk has four fixed levels: model, graph, tensor, and an entry of a tensor's external data. */
#include "formats/onnx/onnx.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "zt/digest.h"

enum { IR_VERSION = 1, GRAPH = 7 };

/* --- detection --- */

/* The fields of ModelProto as of ONNX 1.20; those of later versions are passed over. */
static const struct {
    uint32_t number;
    enum onnx_wire wire;
} model_fields[] = {
    {IR_VERSION, ONNX_VARINT}, {2, ONNX_BYTES},  {3, ONNX_BYTES},     {4, ONNX_BYTES},
    {5, ONNX_VARINT},          {6, ONNX_BYTES},  {GRAPH, ONNX_BYTES}, {8, ONNX_BYTES},
    {14, ONNX_BYTES},          {20, ONNX_BYTES}, {25, ONNX_BYTES},    {26, ONNX_BYTES},
};

static bool is_model_field(const struct onnx_field *field, bool *out_known)
{
    *out_known = false;
    for (size_t i = 0; i < sizeof(model_fields) / sizeof(model_fields[0]); i++) {
        if (model_fields[i].number == field->number) {
            *out_known = true;
            return model_fields[i].wire == field->wire;
        }
    }
    return true;
}

/* What the fields before a fault look like. */
struct likeness {
    bool has_version;
    bool has_graph;
    bool only_known; /* so far; and the first field is the version, as all writers have it */
};

/* Whether the next byte is the graph's tag: what follows may be at fault. */
static bool is_at_graph(struct onnx_reading *reading)
{
    const uint8_t *tag;
    const bool is_there = zt_cursor_take(&reading->cursor, 1, &tag, NULL) == ZT_OK;

    if (!is_there)
        return false;
    reading->cursor.position--;
    return *tag == (GRAPH << 3 | ONNX_BYTES);
}

static enum zt_status judge_fields(struct onnx_reading *reading, struct likeness *likeness,
                                   struct zt_error *error)
{
    const uint64_t end = reading->cursor.end;
    enum zt_status status = ZT_OK;

    while (status == ZT_OK && reading->cursor.position < end) {
        struct onnx_field field;
        bool known;

        likeness->has_graph |= likeness->only_known && is_at_graph(reading);
        status = onnx_field_next(reading, end, &field, error);
        if (status != ZT_OK)
            return status;
        if (!is_model_field(&field, &known))
            return zt_fail(error, ZT_INVALID, "onnx §Wire Type", field.at, "not a model");
        likeness->has_version |= field.number == IR_VERSION;
        likeness->has_graph |= field.number == GRAPH;
        likeness->only_known &= known && likeness->has_version;
        if (field.wire == ONNX_BYTES)
            status = onnx_field_leave(reading, &field, error);
    }
    return status;
}

/* A whole message with a version and a graph is ONNX, and so is one that is cut off or damaged from
 * the graph on, if it begins as all writers begin it. */
static enum onnx_likeness judge(const struct likeness *likeness, enum zt_status status,
                                const struct zt_error *failure)
{
    if (!likeness->has_version)
        return ONNX_NOT;
    if (likeness->has_graph)
        return status == ZT_OK || likeness->only_known ? ONNX_MESSAGE : ONNX_NOT;
    if (status != ZT_OK && strcmp(failure->rule, ONNX_BOUNDS) != 0)
        return ONNX_NOT;
    return likeness->only_known ? ONNX_BEGINNING : ONNX_NOT;
}

enum zt_status onnx_detect(struct zt_source *source, enum onnx_likeness *out_likeness,
                           struct zt_error *error)
{
    struct onnx_reading reading = {.source = source};
    struct likeness likeness = {.only_known = true};
    struct zt_error failure;
    enum zt_status status = zt_cursor_open(&reading.cursor, source, error);

    if (status != ZT_OK)
        return status;
    reading.cursor.bounds_rule = ONNX_BOUNDS;
    reading.cursor.is_scattered = true;
    status = judge_fields(&reading, &likeness, &failure);
    zt_cursor_close(&reading.cursor);
    if (status == ZT_OK || status == ZT_INVALID) {
        *out_likeness = judge(&likeness, status, &failure);
        return ZT_OK;
    }
    if (error != NULL)
        *error = failure;
    return status;
}

/* --- the graph --- */

static enum zt_status take_initializer(void *context, const struct onnx_field *field,
                                       struct zt_error *error)
{
    return onnx_tensor_read(context, field, error);
}

static enum zt_status refuse_sparse(void *context, const struct onnx_field *field,
                                    struct zt_error *error)
{
    (void)context;
    return zt_fail(error, ZT_INVALID, "onnx §Graph SparseInitializer", field->at,
                   "the graph has a sparse initializer, which is not supported");
}

static enum zt_status read_graph(struct onnx_reading *reading, const struct onnx_field *graph,
                                 struct zt_error *error)
{
    static const struct onnx_known_field known[] = {
        {5, ONNX_BYTES, take_initializer},
        {15, ONNX_BYTES, refuse_sparse},
    };

    return onnx_message_read(reading, graph, known, sizeof(known) / sizeof(known[0]), reading,
                             error);
}

/* --- the model --- */

struct model_walk {
    struct onnx_reading *reading;
    struct onnx_field graph; /* number 0: none yet */
};

static enum zt_status take_graph(void *context, const struct onnx_field *field,
                                 struct zt_error *error)
{
    struct model_walk *walk = context;

    if (walk->graph.number != 0)
        return zt_fail(error, ZT_INVALID, "onnx §Model Graph", field->at,
                       "the model has a second graph");
    walk->graph = *field;
    return ZT_OK;
}

static enum zt_status read_message(struct onnx_reading *reading, struct zt_error *error)
{
    static const struct onnx_known_field known[] = {{GRAPH, ONNX_BYTES, take_graph}};
    const struct onnx_field whole = {.wire = ONNX_BYTES, .length = reading->cursor.end};
    struct model_walk walk = {.reading = reading};
    enum zt_status status = onnx_message_read(reading, &whole, known, 1, &walk, error);

    if (status != ZT_OK)
        return status;
    /* The file may have changed since it was detected. */
    if (walk.graph.number == 0)
        return zt_fail(error, ZT_INVALID, "onnx §Model Graph", 0, "the model has no graph");
    return read_graph(reading, &walk.graph, error);
}

/* A name in the arena has its position before it. */
static uint64_t position_of(struct zt_text name)
{
    uint64_t position;

    memcpy(&position, name.bytes - sizeof(position), sizeof(position));
    return position;
}

static enum zt_status check_names(const struct zt_builder *builder, struct zt_error *error)
{
    const struct zt_named_array array =
        zt_objects_named(builder->objects, builder->model->object_count);
    enum zt_status status = zt_names_sort(&array, error);
    size_t second;
    uint64_t one, other;

    if (status != ZT_OK)
        return status;
    second = zt_names_duplicate(&array);
    if (second == 0)
        return ZT_OK;
    one = position_of(zt_names_at(&array, second - 1));
    other = position_of(zt_names_at(&array, second));
    zt_fail(error, ZT_INVALID, ONNX_DUPLICATE_NAME, one > other ? one : other,
            "a name occurs twice");
    zt_error_at(error, zt_names_at(&array, second), (struct zt_text){NULL, 0});
    return ZT_INVALID;
}

static void set_hash(struct zt_model *model, struct zt_hasher *hasher)
{
    struct zt_digest digest;

    zt_hasher_finish(hasher, &digest);
    memcpy(&model->manifest_hash, digest.bytes, sizeof(model->manifest_hash));
}

static enum zt_status read_all(struct onnx_reading *reading, struct zt_error *error)
{
    enum zt_status status;

    if (zt_hasher_new(ZT_DIGEST_XXH3, &reading->hasher) != ZT_OK)
        return zt_fail_memory(error, "a digest");
    status = zt_cursor_open(&reading->cursor, reading->source, error);
    if (status != ZT_OK)
        return status;
    reading->cursor.bounds_rule = ONNX_BOUNDS;
    reading->cursor.is_scattered = true;
    status = read_message(reading, error);
    if (status == ZT_OK)
        status = check_names(reading->builder, error);
    if (status == ZT_OK)
        status = onnx_external_finish(reading, error);
    if (status == ZT_OK)
        set_hash(reading->builder->model, reading->hasher);
    return status;
}

enum zt_status onnx_read(struct zt_source *source, struct zt_builder *builder,
                         struct zt_error *error)
{
    struct onnx_reading reading = {.source = source, .builder = builder};
    enum zt_status status = read_all(&reading, error);

    zt_cursor_close(&reading.cursor);
    zt_hasher_free(reading.hasher);
    free(reading.locations);
    return status;
}
