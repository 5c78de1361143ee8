/* Writes the objects one after another in the model's order. Objects are sorted by name, so all
 * objects of a group are consecutive, and a group is written before its first object. */
#include "derived/reference_json.h"

#include <stdint.h>
#include <string.h>

#include "base/glob.h"
#include "base/memory.h"
#include "derived/zarr_node.h"
#include "http/fields/uri.h"

/* Names are repeated in keys, dimensions and addresses, so the JSON of a malicious manifest could
 * be many times as long as the manifest. The fixed part of each array is not counted. */
#define GROWTH_LIMIT       64
#define OBJECT_SLACK_BYTES 4096
#define TEXT_SLACK_BYTES   (UINT64_C(4) << 20)

struct scribe {
    struct json *json;
    struct zarr_node node; /* the node before it becomes a value of the text */
    /* The metadata of all nodes except the root, by path; empty if there are no groups. zarr finds
     * the root's members through the references, but the members of groups only through this. */
    struct json consolidated;
    bool has_groups;
    const struct generation *generation;
    const struct zt_model *model;
    const struct reference_wish *wish;
    struct glob_set *globs; /* NULL: all objects */
    struct zt_buffer key;
    struct href href;
    struct zt_text previous; /* name of the last array; empty: none */
    uint64_t limit_bytes;
};

/* --- nodes --- */

/* Writes the key: the node's path followed by ending. */
static void put_key(struct scribe *scribe, struct zt_text path, const char *ending)
{
    scribe->key.length = 0;
    zt_buffer_append(&scribe->key, path.bytes, path.length);
    zt_buffer_append(&scribe->key, ending, strlen(ending));
    if (!scribe->key.failed)
        json_key(scribe->json,
                 (struct zt_text){(const char *)scribe->key.bytes, scribe->key.length});
}

/* Writes the node as the metadata at the path. */
static void put_node(struct scribe *scribe, struct zt_text path)
{
    const struct json *node = &scribe->node.json;

    put_key(scribe, path, path.length > 0 ? "/zarr.json" : "zarr.json");
    if (node->failed)
        return;
    json_text(scribe->json, (struct zt_text){node->text, node->length});
    if (scribe->has_groups && path.length > 0) {
        json_key(&scribe->consolidated, path);
        json_raw(&scribe->consolidated, node->text, node->length);
    }
}

/* Runs at the end, since the order of references does not matter. */
static void write_root(struct scribe *scribe)
{
    zarr_node_group(&scribe->node, scribe->model->attributes,
                    scribe->has_groups ? &scribe->consolidated : NULL);
    put_node(scribe, (struct zt_text){"", 0});
}

/* --- arrays --- */

static void put_address(struct scribe *scribe, const struct zarr_array *array)
{
    struct href *href = &scribe->href;

    href_cut(href, 0);
    href_plain(href, scribe->wish->base_url);
    if (array->path != NULL) {
        href_plain(href, "/files/");
        href_path(href, zt_text_from(array->path));
    } else {
        href_model(href, generation_name(scribe->generation));
        href_plain(href, "/objects/");
        href_segment(href, zt_object_name(array->object));
        href_plain(href, "/");
        href_segment(href, zt_component_name(array->component));
        if (array->is_widened)
            href_plain(href, "?dtype=f32");
    }
    if (!href->failed)
        json_text(scribe->json, (struct zt_text){href->text, href->length});
}

/* "c/0/0": the indices of the chunk along each dimension, all 0. */
static void write_chunk(struct scribe *scribe, const struct zarr_array *array)
{
    struct json *json = scribe->json;
    char ending[3 + 2 * UINT8_MAX] = "/c";

    for (unsigned i = 0; i < array->object->rank; i++)
        memcpy(ending + 2 + (size_t)2 * i, "/0", 3);
    put_key(scribe, zt_object_name(array->object), ending);
    json_array_begin(json);
    put_address(scribe, array);
    json_uint(json, array->path != NULL ? array->component->offset : 0);
    json_uint(json, array->path != NULL ? array->component->length : array->bytes);
    json_array_end(json);
}

/* --- groups --- */

static bool is_selected(const struct scribe *scribe, struct zt_text name)
{
    return zt_text_starts_with(name, scribe->wish->prefix) &&
           (scribe->globs == NULL || glob_set_matches(scribe->globs, name));
}

/* Writes the groups that contain an array and did not contain the previous one. Fails with
 * ZT_UNSUPPORTED if one of them is itself an array. */
static enum zt_status write_groups(struct scribe *scribe, struct zt_text name,
                                   struct zt_error *error)
{
    for (size_t i = 0; i < name.length; i++) {
        const struct zt_text group = {name.bytes, i};

        if (name.bytes[i] != '/' ||
            zt_text_starts_with(scribe->previous, (struct zt_text){name.bytes, i + 1}))
            continue;
        if (is_selected(scribe, group) && zt_model_find(scribe->model, group) != NULL) {
            zt_fail(error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                    "zarr cannot hold this object: its name begins with another object's, so it "
                    "would be inside that one");
            zt_error_at(error, name, (struct zt_text){NULL, 0});
            return ZT_UNSUPPORTED;
        }
        zarr_node_group(&scribe->node, (struct zt_text){NULL, 0}, NULL);
        put_node(scribe, group);
    }
    return ZT_OK;
}

/* --- the whole --- */

static enum zt_status write_object(struct scribe *scribe, const struct zt_object *object,
                                   struct zt_error *error)
{
    struct json *json = scribe->json;
    struct zarr_array array;
    enum zt_status status =
        zarr_array_of(scribe->generation, object, scribe->wish->to_f32, &array, error);

    if (status == ZT_OK)
        status = write_groups(scribe, zt_object_name(object), error);
    if (status != ZT_OK)
        return status;
    zarr_node_array(&scribe->node, scribe->model, &array);
    put_node(scribe, zt_object_name(object));
    if (array.bytes > 0)
        write_chunk(scribe, &array);
    scribe->previous = zt_object_name(object);
    json->failed = json->failed || zarr_node_failed(&scribe->node) || scribe->key.failed ||
                   scribe->href.failed || scribe->consolidated.failed;
    if (json->length + scribe->consolidated.length > scribe->limit_bytes) {
        json->too_long = true;
        json->failed = true;
    }
    return ZT_OK;
}

static enum zt_status write_objects(struct scribe *scribe, struct zt_error *error)
{
    const struct zt_model *model = scribe->model;
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < model->object_count && status == ZT_OK && !scribe->json->failed; i++)
        if (is_selected(scribe, zt_object_name(&model->objects[i])))
            status = write_object(scribe, &model->objects[i], error);
    if (status == ZT_OK && scribe->previous.length == 0 && !scribe->json->failed)
        return zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no object is selected");
    return status;
}

static bool has_groups(const struct scribe *scribe)
{
    const struct zt_model *model = scribe->model;

    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_text name = zt_object_name(&model->objects[i]);

        if (memchr(name.bytes, '/', name.length) != NULL && is_selected(scribe, name))
            return true;
    }
    return false;
}

static uint64_t limit_of(const struct scribe *scribe)
{
    const uint64_t objects = scribe->model->object_count;

    return scribe->model->manifest_length * GROWTH_LIMIT + TEXT_SLACK_BYTES +
           objects * (OBJECT_SLACK_BYTES + strlen(scribe->wish->base_url));
}

/* Returns false if out of memory. */
static bool begin(struct scribe *scribe)
{
    const struct reference_wish *wish = scribe->wish;

    scribe->limit_bytes = limit_of(scribe);
    zarr_node_init(&scribe->node);
    json_init(&scribe->consolidated, false);
    href_init(&scribe->href);
    if (wish->match_count > 0) {
        scribe->globs = glob_set_new(wish->matches, wish->match_count);
        if (scribe->globs == NULL)
            return false;
    }
    scribe->has_groups = has_groups(scribe);
    return true;
}

static void end(struct scribe *scribe)
{
    glob_set_free(scribe->globs);
    href_free(&scribe->href);
    zt_buffer_free(&scribe->key);
    json_free(&scribe->consolidated);
    zarr_node_free(&scribe->node);
}

static enum zt_status write_all(struct scribe *scribe, struct zt_error *error)
{
    struct json *json = scribe->json;
    enum zt_status status;

    json_object_begin(json);
    json_key_string(json, "version");
    json_uint(json, 1);
    json_key_string(json, "refs");
    json_object_begin(json);
    json_object_begin(&scribe->consolidated);
    status = write_objects(scribe, error);
    if (status != ZT_OK || json->failed)
        return status;
    zarr_text_end(&scribe->consolidated);
    write_root(scribe);
    json->failed = json->failed || zarr_node_failed(&scribe->node) || scribe->consolidated.failed;
    json_object_end(json);
    json_object_end(json);
    return ZT_OK;
}

enum zt_status reference_write(struct json *json, const struct generation *generation,
                               const struct reference_wish *wish, struct zt_error *error)
{
    struct scribe scribe = {.json = json,
                            .generation = generation,
                            .model = generation->model,
                            .wish = wish,
                            .previous = {"", 0}};
    enum zt_status status = ZT_OK;

    if (begin(&scribe))
        status = write_all(&scribe, error);
    else
        json->failed = true;
    end(&scribe);
    return status;
}
