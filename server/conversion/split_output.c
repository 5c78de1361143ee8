/* Writes a model as several safetensors files and their index. */
#include "conversion/split_output.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "base/json_write.h"
#include "conversion/output_file.h"
#include "conversion/parallel_conversion.h"
#include "zt/join.h"
#include "zt/select.h"

#define EXTENSION ".safetensors"
/* Marks objects of the part that is being filled. */
#define OPEN_PART UINT32_MAX

/* --- sizes --- */

static uint64_t unit_bytes(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"TB", 1000000000000},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
    };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcasecmp(unit, units[i].name) == 0)
            return units[i].bytes;
    return 0;
}

bool split_size_read(const char *text, uint64_t *out_bytes)
{
    const struct zt_text digits = {text, strspn(text, "0123456789")};
    uint64_t value;

    return zt_decimal_read(digits, UINT64_MAX, &value) &&
           !__builtin_mul_overflow(value, unit_bytes(text + digits.length), out_bytes) &&
           *out_bytes > 0;
}

/* --- which object goes where --- */

/* An object of the source: the position of its bytes there, and its size in the target. */
struct placed_object {
    uint32_t object;
    uint32_t shard;
    uint64_t offset;
    uint64_t bytes;
};

static uint64_t bytes_of(const struct zt_model *model, const struct zt_object *object)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < object->component_count; i++) {
        const struct zt_component *component = &zt_object_components(model, object)[i];
        uint64_t bytes = component->decoded_length;

        /* Formats that do not store the length only have dense layouts here. */
        if (bytes == ZT_LENGTH_UNKNOWN &&
            zt_element_bytes((enum zt_dtype)component->dtype, (enum zt_logical)component->logical,
                             zt_object_elements(model, object), &bytes) != ZT_OK)
            bytes = 0;
        sum += bytes;
    }
    return sum;
}

static int compare_places(const void *a, const void *b)
{
    const struct placed_object *one = a;
    const struct placed_object *other = b;

    if (one->shard != other->shard)
        return one->shard < other->shard ? -1 : 1;
    if (one->offset != other->offset)
        return one->offset < other->offset ? -1 : 1;
    return one->object < other->object ? -1 : one->object > other->object;
}

/* The projection has the same objects as the source, under the same names. */
static void place_objects(const struct zt_model *source, const struct zt_projection *projection,
                          struct placed_object *placed)
{
    assert(projection->model->object_count == source->object_count);
    for (uint32_t i = 0; i < source->object_count; i++) {
        const struct zt_object *object = &source->objects[i];
        const struct zt_component *first = zt_object_components(source, object);

        placed[i] = (struct placed_object){
            .object = i, .bytes = bytes_of(projection->model, &projection->model->objects[i])};
        if (object->component_count > 0) {
            placed[i].shard = first->shard;
            placed[i].offset = first->offset;
        }
    }
    qsort(placed, source->object_count, sizeof(*placed), compare_places);
}

/* The part that is being filled. */
struct filling {
    uint64_t bytes;
    uint32_t first; /* its first object; objects of larger tensors may be in between */
    bool has_objects;
};

/* Assigns the next number to the part that was filled. */
static void close_part(struct split_plan *plan, const struct placed_object *placed, uint32_t end,
                       struct filling *filling)
{
    if (!filling->has_objects)
        return;
    for (uint32_t i = filling->first; i < end; i++)
        if (plan->parts[placed[i].object] == OPEN_PART)
            plan->parts[placed[i].object] = plan->count;
    plan->count++;
    *filling = (struct filling){0};
}

/* A larger tensor does not end the part that is being filled, and gets the number before it, so
 * that the parts are the same as those that huggingface_hub makes. */
static void fill_parts(struct split_plan *plan, const struct placed_object *placed, uint32_t count,
                       uint64_t part_bytes)
{
    struct filling filling = {0};

    for (uint32_t i = 0; i < count; i++) {
        plan->total_bytes += placed[i].bytes;
        if (placed[i].bytes > part_bytes) {
            plan->parts[placed[i].object] = plan->count++;
            continue;
        }
        assert(filling.bytes <= part_bytes);
        if (placed[i].bytes > part_bytes - filling.bytes)
            close_part(plan, placed, i, &filling);
        if (!filling.has_objects)
            filling = (struct filling){.first = i, .has_objects = true};
        plan->parts[placed[i].object] = OPEN_PART;
        filling.bytes += placed[i].bytes;
    }
    close_part(plan, placed, count, &filling);
}

enum zt_status split_plan_make(const struct zt_model *source,
                               const struct zt_projection *projection, uint64_t part_bytes,
                               struct split_plan *out_plan, struct zt_error *error)
{
    struct placed_object *placed = calloc(source->object_count + (size_t)1, sizeof(*placed));
    struct split_plan plan = {0};

    plan.parts = calloc(source->object_count + (size_t)1, sizeof(*plan.parts));
    if (placed == NULL || plan.parts == NULL) {
        free(placed);
        free(plan.parts);
        return zt_fail_memory(error, "parts");
    }
    place_objects(source, projection, placed);
    fill_parts(&plan, placed, source->object_count, part_bytes);
    free(placed);
    if (plan.count > ZT_PARTS_MAX) {
        free(plan.parts);
        return zt_fail(error, ZT_LIMIT, NULL, ZT_NO_OFFSET,
                       "%" PRIu32 " parts of at most %" PRIu64 " bytes, more than %d", plan.count,
                       part_bytes, ZT_PARTS_MAX);
    }
    *out_plan = plan;
    return ZT_OK;
}

void split_plan_free(struct split_plan *plan)
{
    free(plan->parts);
    memset(plan, 0, sizeof(*plan));
}

/* --- names --- */

struct writing {
    const struct split_plan *plan;
    const struct zt_conversion *whole;
    struct split_replacing *replacing;
    char **paths;              /* for the parts, and then for the index */
    struct output_file *files; /* in the same order; the open files come first */
    uint32_t open_count;
    bool *objects;   /* marks the source's objects in the current part */
    uint32_t failed; /* number of the file that could not be written; UINT32_MAX: none */
};

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

char *split_output_path(const char *path, uint32_t number, uint32_t count)
{
    size_t stem = strlen(path);
    char *made = NULL;
    int length;

    assert(number <= count);
    if (zt_text_ends_like((struct zt_text){path, stem}, zt_text_from(EXTENSION)))
        stem -= strlen(EXTENSION);
    length = number < count ? asprintf(&made, "%.*s-%05" PRIu32 "-of-%05" PRIu32 EXTENSION,
                                       (int)stem, path, number + 1, count)
                            : asprintf(&made, "%.*s" EXTENSION ".index.json", (int)stem, path);
    return length < 0 ? NULL : made;
}

static bool name_files(struct writing *writing, const char *path)
{
    for (uint32_t i = 0; i <= writing->plan->count; i++) {
        writing->paths[i] = split_output_path(path, i, writing->plan->count);
        if (writing->paths[i] == NULL)
            return false;
    }
    return true;
}

static enum zt_status begin(struct writing *writing, const char *path, struct zt_error *error)
{
    const uint32_t files = writing->plan->count + 1;

    writing->paths = calloc(files, sizeof(*writing->paths));
    writing->files = calloc(files, sizeof(*writing->files));
    writing->objects = calloc(writing->whole->source->object_count + (size_t)1, sizeof(bool));
    if (writing->paths == NULL || writing->files == NULL || writing->objects == NULL ||
        !name_files(writing, path))
        return zt_fail_memory(error, "parts");
    return ZT_OK;
}

/* --- a part --- */

static enum zt_status open_output(struct writing *writing, struct output_file **out_file,
                                  struct zt_error *error)
{
    const uint32_t number = writing->open_count;
    enum zt_status status;

    assert(number <= writing->plan->count);
    status = output_file_open(writing->paths[number], &writing->files[number], error);
    if (status != ZT_OK) {
        writing->failed = number;
        return status;
    }
    writing->files[number].never_replaces = writing->replacing->is_refused;
    writing->open_count++;
    *out_file = &writing->files[number];
    return ZT_OK;
}

static enum zt_status convert_part(const struct writing *writing, struct output_file *file,
                                   const struct zt_selection *selection, struct zt_error *error)
{
    struct zt_conversion conversion = *writing->whole;
    struct zt_projection *projection = NULL;
    enum zt_status (*const project)(const struct zt_model *, enum zt_target,
                                    struct zt_projection **, struct zt_error *) =
        conversion.projection->is_widened ? zt_model_project_widened : zt_model_project;
    enum zt_status status = project(selection->model, ZT_TARGET_SAFETENSORS, &projection, error);

    if (status != ZT_OK)
        return status;
    conversion.source = selection->model;
    conversion.projection = projection;
    status = parallel_conversion_write(&conversion, file, error);
    zt_projection_free(projection);
    return status == ZT_OK ? output_file_rest(file, error) : status;
}

static enum zt_status write_part(struct writing *writing, uint32_t part, struct zt_error *error)
{
    const struct zt_model *source = writing->whole->source;
    const struct zt_choice choice = {.objects = writing->objects};
    struct zt_selection selection = {0};
    enum zt_slice_verdict verdict;
    struct output_file *file;
    enum zt_status status = open_output(writing, &file, error);

    assert(part < writing->plan->count);
    if (status != ZT_OK)
        return status;
    for (uint32_t i = 0; i < source->object_count; i++)
        writing->objects[i] = writing->plan->parts[i] == part;
    status = zt_model_select(source, &choice, &selection, &verdict, error);
    if (status == ZT_OK)
        status = convert_part(writing, file, &selection, error);
    zt_selection_free(&selection);
    if (status == ZT_OK) {
        status = output_file_check(file, error);
        file->failed = status != ZT_OK;
    }
    if (status != ZT_OK && file->failed)
        writing->failed = part;
    return status;
}

/* --- the index --- */

static void put_index(const struct writing *writing, struct json *json)
{
    const struct zt_model *model = writing->whole->projection->model;

    json_object_begin(json);
    json_object_member(json, "metadata");
    json_uint_member(json, "total_size", writing->plan->total_bytes);
    json_object_end(json);
    json_object_member(json, "weight_map");
    for (uint32_t i = 0; i < model->object_count; i++) {
        assert(writing->plan->parts[i] < writing->plan->count);
        json_key(json, zt_object_name(&model->objects[i]));
        json_put_string(json, base_of(writing->paths[writing->plan->parts[i]]));
    }
    json_object_end(json);
    json_object_end(json);
}

static enum zt_status write_index(struct writing *writing, struct zt_error *error)
{
    struct output_file *file;
    struct json json;
    enum zt_status status = open_output(writing, &file, error);

    if (status != ZT_OK)
        return status;
    json_init(&json, true);
    put_index(writing, &json);
    status = json.failed ? zt_fail_memory(error, "an index")
                         : output_file_write(file, json.text, json.length, error);
    json_free(&json);
    if (status == ZT_OK)
        status = output_file_rest(file, error);
    if (status != ZT_OK)
        writing->failed = writing->plan->count;
    return status;
}

/* --- all files --- */

static enum zt_status publish_all(struct writing *writing, struct zt_error *error)
{
    const uint32_t count = writing->open_count;
    uint32_t failed = 0;
    const enum zt_status status = output_files_publish(writing->files, count, &failed, error);

    /* Publishing frees each file, whether it succeeded or not. */
    writing->open_count = 0;
    if (status != ZT_OK)
        writing->failed = failed;
    for (uint32_t i = 0; i < count && status == ZT_OK; i++)
        if (writing->files[i].has_replaced)
            writing->replacing->has_happened = true;
    return status;
}

static void finish(struct writing *writing, char **out_failed)
{
    assert(writing->failed == UINT32_MAX || writing->failed <= writing->plan->count);
    for (uint32_t i = 0; i < writing->open_count; i++)
        output_file_discard(&writing->files[i]);
    *out_failed = NULL;
    if (writing->failed != UINT32_MAX && writing->paths != NULL) {
        *out_failed = writing->paths[writing->failed];
        writing->paths[writing->failed] = NULL;
    }
    for (uint32_t i = 0; writing->paths != NULL && i <= writing->plan->count; i++)
        free(writing->paths[i]);
    free(writing->paths);
    free(writing->files);
    free(writing->objects);
}

enum zt_status split_output_write(const struct split_plan *plan, const struct zt_conversion *whole,
                                  const char *path, struct split_replacing *replacing,
                                  char **out_failed, struct zt_error *error)
{
    struct writing writing = {
        .plan = plan, .whole = whole, .replacing = replacing, .failed = UINT32_MAX};
    enum zt_status status = begin(&writing, path, error);

    for (uint32_t part = 0; part < plan->count && status == ZT_OK; part++)
        status = write_part(&writing, part, error);
    if (status == ZT_OK)
        status = write_index(&writing, error);
    if (status == ZT_OK)
        status = publish_all(&writing, error);
    finish(&writing, out_failed);
    return status;
}
