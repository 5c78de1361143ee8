/* Writes manifests as JSON in one pass, without a tree: models of a hundred thousand objects are
 * ordinary. */
#include "derived/manifest_json.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "base/glob.h"
#include "base/hex.h"
#include "http/fields/uri.h"
#include "input/date.h"
#include "verify/component_digests.h"
#include "zt/attributes.h"

/* Each component's href contains the object's name, so the JSON of a malicious manifest could be
 * many times as long as the manifest. The JSON of real manifests is less than 20 times as long,
 * apart from a fixed part. */
#define GROWTH_LIMIT     64
#define TEXT_SLACK_BYTES (UINT64_C(4) << 20)
#define NS_PER_SECOND    INT64_C(1000000000)
/* The maximum for an object of a joined model with a long name and shape. */
#define PART_OBJECT_BYTES 4096

/* The state of one call that writes a manifest or an object. */
struct scribe {
    struct json *json;
    const struct zt_model *model;
    const struct manifest_source *source;
    struct href href;
    size_t objects_length;  /* of "/v1/models/<name>/objects/" in href */
    struct glob_set *globs; /* NULL: all objects */
    unsigned fields;
    const struct generation *digested; /* as in struct manifest_selection */
    uint64_t limit_bytes;
};

/* A server limits the text like the opened model. */
static uint64_t at_most_limit(uint64_t bytes)
{
    const uint64_t limit = zt_model_memory_limit();

    return bytes < limit ? bytes : limit;
}

static void scribe_init(struct scribe *scribe, struct json *json, const struct zt_model *model,
                        const struct manifest_source *source, unsigned fields)
{
    *scribe = (struct scribe){.json = json, .model = model, .source = source};
    scribe->fields = fields != 0 ? fields : ~0U;
    scribe->limit_bytes = model->manifest_length * GROWTH_LIMIT + TEXT_SLACK_BYTES;
    /* Most of a joined model's tensors come from other manifests than its own file's. */
    if (model->shard_count > 0 && model->shards[0].kind == ZT_SHARD_PART)
        scribe->limit_bytes += (uint64_t)model->object_count * PART_OBJECT_BYTES;
    href_init(&scribe->href);
    if (source->path != NULL) {
        scribe->limit_bytes += (uint64_t)model->component_count * strlen(source->base_path);
        href_plain(&scribe->href, source->base_path);
        href_model(&scribe->href, source->name);
        href_plain(&scribe->href, "/objects/");
        scribe->objects_length = scribe->href.length;
    }
    scribe->limit_bytes = at_most_limit(scribe->limit_bytes);
}

static void scribe_end(struct scribe *scribe)
{
    if (scribe->href.failed)
        scribe->json->failed = true;
    href_free(&scribe->href);
    glob_set_free(scribe->globs);
}

/* --- attributes --- */

static void check_length(struct scribe *scribe)
{
    if (scribe->json->length > scribe->limit_bytes) {
        scribe->json->too_long = true;
        scribe->json->failed = true;
    }
}

static void append(void *context, const char *text, size_t length)
{
    struct scribe *scribe = context;

    json_raw_piece(scribe->json, text, length);
    check_length(scribe);
}

static void write_attributes(struct scribe *scribe, const void *bytes, size_t length)
{
    struct zt_error error;

    json_key_string(scribe->json, "attributes");
    if (length == 0) {
        json_raw(scribe->json, "{}", 2);
        return;
    }
    json_raw_begin(scribe->json);
    if (zt_attributes_write_json((struct zt_text){bytes, length}, append, scribe, &error) != ZT_OK)
        scribe->json->failed = true;
}

/* --- components --- */

static void write_text(struct json *json, const char *key, const char *text, uint32_t length)
{
    json_key_string(json, key);
    json_text(json, (struct zt_text){text, length});
}

static void write_sha256(struct scribe *scribe, const struct zt_component *component)
{
    const uint32_t index = zt_component_index(scribe->model, component);
    uint8_t sha256[SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];

    if (!stored_digest_whole(scribe->digested, index, sha256))
        return;
    *zt_hex_write(text, sha256, sizeof(sha256)) = '\0';
    json_key_string(scribe->json, "sha256");
    json_put_string(scribe->json, text);
}

static void write_component_href(struct scribe *scribe, const struct zt_object *object,
                                 const struct zt_component *component)
{
    struct href *href = &scribe->href;

    assert(href->failed || href->length >= scribe->objects_length);
    href_cut(href, scribe->objects_length);
    href_segment(href, zt_object_name(object));
    href_plain(href, "/");
    href_segment(href, zt_component_name(component));
    if (!href->failed) {
        json_key_string(scribe->json, "href");
        json_text(scribe->json, (struct zt_text){href->text, href->length});
    }
}

static void write_component(struct scribe *scribe, const struct zt_object *object,
                            const struct zt_component *component)
{
    struct json *json = scribe->json;
    const char *dtype = zt_dtype_name(component->dtype);

    json_key(json, zt_component_name(component));
    json_object_begin(json);
    json_key_string(json, "dtype");
    json_put_string(json, dtype);
    if (component->type != NULL) {
        write_text(json, "type", component->type, component->type_length);
    } else {
        json_key_string(json, "type");
        json_put_string(json, dtype);
    }
    json_uint_member(json, "offset", component->offset);
    json_uint_member(json, "length", component->length);
    write_text(json, "encoding", component->encoding_name, component->encoding_length);
    if (component->decoded_length != ZT_LENGTH_UNKNOWN)
        json_uint_member(json, "uncompressed_length", component->decoded_length);
    if (component->digest != NULL)
        write_text(json, "digest", component->digest, component->digest_length);
    if (scribe->digested != NULL)
        write_sha256(scribe, component);
    if (component->shard != 0) {
        const struct zt_shard *shard = &scribe->model->shards[component->shard - 1];

        assert(component->shard <= scribe->model->shard_count);
        write_text(json, "shard", shard->name, shard->name_length);
    }
    if (scribe->source->path != NULL)
        write_component_href(scribe, object, component);
    json_object_end(json);
}

static void write_components(struct scribe *scribe, const struct zt_object *object)
{
    const struct zt_component *components = zt_object_components(scribe->model, object);

    json_key_string(scribe->json, "components");
    json_object_begin(scribe->json);
    for (uint32_t i = 0; i < object->component_count && !scribe->json->failed; i++) {
        write_component(scribe, object, &components[i]);
        check_length(scribe);
    }
    json_object_end(scribe->json);
}

/* --- objects --- */

static void write_shape(struct scribe *scribe, const struct zt_object *object)
{
    const uint64_t *shape = zt_object_shape(scribe->model, object);

    json_key_string(scribe->json, "shape");
    json_array_begin(scribe->json);
    for (unsigned i = 0; i < object->rank; i++)
        json_uint(scribe->json, shape[i]);
    json_array_end(scribe->json);
}

static void write_object(struct scribe *scribe, const struct zt_object *object)
{
    json_object_begin(scribe->json);
    if (scribe->fields & MANIFEST_SHAPE)
        write_shape(scribe, object);
    if (scribe->fields & MANIFEST_FORMAT)
        write_text(scribe->json, "format", object->format, object->format_length);
    if (scribe->fields & MANIFEST_ATTRIBUTES)
        write_attributes(scribe, object->attributes, object->attributes_length);
    if (scribe->fields & MANIFEST_COMPONENTS)
        write_components(scribe, object);
    json_object_end(scribe->json);
}

/* --- selections --- */

bool manifest_fields_parse(struct zt_text text, unsigned *out_fields)
{
    static const char *const names[] = {"shape", "format", "attributes", "components"};
    unsigned fields = 0;

    for (size_t begin = 0; begin <= text.length;) {
        const char *comma = memchr(text.bytes + begin, ',', text.length - begin);
        size_t end = comma != NULL ? (size_t)(comma - text.bytes) : text.length;
        unsigned bit = 0;

        for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
            if (zt_text_is((struct zt_text){text.bytes + begin, end - begin}, names[i]))
                bit = 1U << i;
        if (bit == 0)
            return false;
        fields |= bit;
        begin = end + 1;
    }
    *out_fields = fields;
    return true;
}

/* Returns the first object whose name does not sort before the prefix. Objects are sorted, so those
 * whose names start with it follow. */
static uint32_t find_first(const struct zt_model *model, struct zt_text prefix)
{
    uint32_t low = 0;
    uint32_t high = model->object_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (zt_text_compare(zt_object_name(&model->objects[middle]), prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void write_objects(struct scribe *scribe, const struct manifest_selection *selection)
{
    const struct zt_model *model = scribe->model;

    json_key_string(scribe->json, "objects");
    json_object_begin(scribe->json);
    for (uint32_t i = find_first(model, selection->prefix);
         i < model->object_count && !scribe->json->failed; i++) {
        struct zt_text name = zt_object_name(&model->objects[i]);

        if (!zt_text_starts_with(name, selection->prefix))
            break;
        if (scribe->globs == NULL || glob_set_matches(scribe->globs, name)) {
            json_key(scribe->json, name);
            write_object(scribe, &model->objects[i]);
        }
    }
    json_object_end(scribe->json);
}

/* --- the whole --- */

void manifest_write_time(struct json *json, int64_t time_ns)
{
    time_t seconds = (time_t)(time_ns / NS_PER_SECOND - (time_ns % NS_PER_SECOND < 0));
    char text[ISO_DATE_SIZE + 1];

    if (iso_date_format(seconds, text))
        json_put_string(json, strcat(text, "Z"));
    else
        json_put_null(json);
}

void manifest_write_seconds(struct json *json, const char *key, int64_t time_s)
{
    json_key_string(json, key);
    manifest_write_time(json, time_s * NS_PER_SECOND);
}

static void write_source(struct json *json, const struct zt_model *model,
                         const struct manifest_source *source)
{
    json_key_string(json, "source");
    json_object_begin(json);
    json_key_string(json, "format");
    json_put_string(json, model->format_name);
    json_key_string(json, "version");
    json_text(json, model->version);
    json_uint_member(json, "size", source->is_joined ? source->size_bytes : model->file_size);
    if (!source->is_undated) {
        json_key_string(json, "modified");
        manifest_write_time(json, source->modified_ns);
    }
    if (source->etag != NULL) {
        json_key_string(json, "etag");
        json_put_string(json, source->etag);
    }
    if (source->path != NULL && !source->is_joined) {
        struct href href;

        href_begin(&href, source->base_path);
        href_plain(&href, "/files/");
        href_path(&href, (struct zt_text){source->path, strlen(source->path)});
        json_key_string(json, "href");
        json_put_string(json, href.failed ? "" : href.text);
        json->failed = json->failed || href.failed;
        href_free(&href);
    }
    json_object_end(json);
}

static void write_parameters(struct json *json, const struct zt_model *model)
{
    uint64_t elements;

    json_key_string(json, "parameters");
    if (zt_model_elements(model, &elements))
        json_uint(json, elements);
    else
        json_put_null(json);
}

void manifest_write(struct json *json, const struct zt_model *model,
                    const struct manifest_source *source,
                    const struct manifest_selection *selection)
{
    static const struct manifest_selection everything = {0};
    const struct manifest_selection *chosen = selection != NULL ? selection : &everything;
    struct scribe scribe;

    scribe_init(&scribe, json, model, source, chosen->fields);
    scribe.digested = chosen->digested;
    assert(scribe.digested == NULL || scribe.digested->model == model);
    if (chosen->without_attributes)
        scribe.fields &= ~(unsigned)MANIFEST_ATTRIBUTES;
    if (chosen->match_count > 0) {
        scribe.globs = glob_set_new(chosen->matches, chosen->match_count);
        json->failed = json->failed || scribe.globs == NULL;
    }
    json_object_begin(json);
    json_key_string(json, "name");
    json_text(json, source->name);
    write_source(json, model, source);
    write_parameters(json, model);
    if (chosen->digested != NULL)
        json_uint_member(json, "pending_digests", stored_digest_pending(chosen->digested));
    if (!chosen->without_attributes)
        write_attributes(&scribe, model->attributes.bytes, model->attributes.length);
    write_objects(&scribe, chosen);
    json_object_end(json);
    scribe_end(&scribe);
}

void manifest_write_object(struct json *json, const struct zt_model *model,
                           const struct zt_object *object, const struct manifest_source *source,
                           unsigned fields)
{
    struct scribe scribe;

    scribe_init(&scribe, json, model, source, fields);
    write_object(&scribe, object);
    scribe_end(&scribe);
}
