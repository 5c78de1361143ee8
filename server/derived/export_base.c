/* Compares a model with its base. Both components are verified first: a digest that a damaged file
 * states would leave out an object that the client has in another form. */
#include "derived/export_base.h"

#include <assert.h>
#include <string.h>

#include "derived/difference.h"
#include "derived/export_work.h"
#include "store/versions/history.h"
#include "verify/component_digests.h"
#include "zt/decode.h"

/* --- names --- */

/* The ETag of the whole manifest names the version of the model's files. */
static struct zt_text etag_of(const struct generation *generation)
{
    assert(generation->etag[0] == '"' && generation->model != NULL);
    return (struct zt_text){generation->etag + 1, strlen(generation->etag) - 2};
}

static struct zt_text without_quotes(struct zt_text name)
{
    if (name.length < 2 || name.bytes[0] != '"' || name.bytes[name.length - 1] != '"')
        return name;
    return (struct zt_text){name.bytes + 1, name.length - 2};
}

bool export_base_is_named(const struct generation *generation, struct zt_text name)
{
    struct history_path path;
    const bool is_own = history_path_split(generation_name(generation), &path)
                            ? zt_text_is(name, path.commit)
                            : zt_text_is(name, HISTORY_MAIN);

    return is_own || zt_text_equal(without_quotes(name), etag_of(generation));
}

struct zt_text export_base_identity(const struct generation *base)
{
    struct history_path ignored;

    return history_path_split(generation_name(base), &ignored) ? generation_name(base)
                                                               : etag_of(base);
}

bool export_base_is_current(const struct generation *generation, const struct generation *base)
{
    return base == generation || zt_text_equal(etag_of(base), etag_of(generation));
}

/* --- objects --- */

static bool have_equal_types(const struct zt_component *one, const struct zt_component *other)
{
    return one->dtype == other->dtype && one->logical == other->logical &&
           zt_text_equal(zt_component_name(one), zt_component_name(other)) &&
           (one->logical != ZT_LOGICAL_UNKNOWN ||
            zt_text_equal((struct zt_text){one->type, one->type_length},
                          (struct zt_text){other->type, other->type_length}));
}

/* Formats of files have other names for some layouts. */
static bool have_equal_layouts(const struct zt_object *one, const struct zt_object *other)
{
    const bool is_named = one->layout == ZT_LAYOUT_GGUF || one->layout == ZT_LAYOUT_OTHER;

    return one->layout == other->layout &&
           (!is_named || zt_text_equal((struct zt_text){one->format, one->format_length},
                                       (struct zt_text){other->format, other->format_length}));
}

static bool are_alike(const struct zt_model *model, const struct zt_object *object,
                      const struct zt_model *base, const struct zt_object *other)
{
    if (!have_equal_layouts(object, other) || object->rank != other->rank ||
        object->component_count != other->component_count ||
        object->attributes_length != other->attributes_length ||
        memcmp(zt_object_shape(model, object), zt_object_shape(base, other),
               object->rank * sizeof(uint64_t)) != 0 ||
        (object->attributes_length > 0 &&
         memcmp(object->attributes, other->attributes, object->attributes_length) != 0))
        return false;
    for (uint32_t i = 0; i < object->component_count; i++)
        if (!have_equal_types(&zt_object_components(model, object)[i],
                              &zt_object_components(base, other)[i]))
            return false;
    return true;
}

/* Returns NULL if the base has no such object, or one of another kind. */
static const struct zt_object *object_in(const struct generation *generation,
                                         const struct generation *base, uint32_t index)
{
    const struct zt_object *object = &generation->model->objects[index];
    const struct zt_object *other;

    assert(index < generation->model->object_count);
    other = zt_model_find(base->model, zt_object_name(object));
    return other != NULL && are_alike(generation->model, object, base->model, other) ? other : NULL;
}

bool export_base_has_object(const struct generation *generation, const struct generation *base,
                            uint32_t object)
{
    return object_in(generation, base, object) != NULL;
}

/* --- components --- */

/* Finds the component of the base that may have the same bytes. Returns false if there is none. */
static bool find_component(const struct generation *generation, const struct generation *base,
                           const struct export_origin *origin, uint32_t *out_component)
{
    const struct zt_model *model = generation->model;
    const struct zt_object *other = object_in(generation, base, origin->object);
    const struct zt_component *component = &model->components[origin->component];
    const struct zt_component *found;

    if (other == NULL)
        return false;
    *out_component = other->first_component +
                     (origin->component - model->objects[origin->object].first_component);
    found = &base->model->components[*out_component];
    assert(zt_text_equal(zt_component_name(component), zt_component_name(found)));
    return found->encoding != ZT_ENCODING_UNKNOWN &&
           (component->decoded_length == found->decoded_length ||
            component->decoded_length == ZT_LENGTH_UNKNOWN ||
            found->decoded_length == ZT_LENGTH_UNKNOWN);
}

static bool is_plain(const struct generation *generation, uint32_t component)
{
    return zt_component_is_plain(&generation->model->components[component]);
}

/* Returns false if the work has failed. */
static bool find_digest(struct export_runner *runner, struct generation *generation,
                        uint32_t component, uint8_t out_sha256[SHA256_BYTES])
{
    struct export_work *work = runner->work;
    struct server *server = work->order.server;
    const struct zt_progress progress = {export_runner_advance, runner};
    struct zt_fingerprint known;
    struct zt_error error;
    enum zt_status status;

    if (decoded_digest_find(generation, component, ZT_DIGEST_SHA256, &known)) {
        memcpy(out_sha256, known.digest.bytes, SHA256_BYTES);
        return true;
    }
    if (is_plain(generation, component) && stored_digest_whole(generation, component, out_sha256))
        return true;
    status = difference_hash(server, generation, component, &progress, out_sha256, &error);
    if (status != ZT_OK) {
        if (export_is_wanted(work))
            export_fail(work, export_failure_of(status, EXPORT_UNSUPPORTED_ENCODING), &error);
        return false;
    }
    if (is_plain(generation, component))
        stored_digest_learn(server, generation, component, out_sha256);
    if (!generation_is_unverified(generation))
        decoded_digest_learn(generation, component, out_sha256);
    return true;
}

static void refuse_base(struct export_work *work, const struct export_origin *origin,
                        enum component_state state)
{
    if (state == COMPONENT_UNAVAILABLE)
        export_fail_component(work, EXPORT_ERROR, origin,
                              "the base cannot be read from the store at the moment");
    else
        export_fail_component(work, EXPORT_CORRUPT, origin,
                              "the stored bytes of the base do not match the digest stated in its "
                              "file; export without base");
}

bool export_base_compare(struct export_runner *runner)
{
    struct export_work *work = runner->work;
    struct generation *generation = work->order.generation;
    struct generation *base = work->order.query->base;
    const struct export_origin *origin =
        &work->selected[work->projection->origins[runner->component].component];
    uint8_t sha256[2][SHA256_BYTES];
    enum component_state state;
    uint32_t component;

    assert(base != NULL && work->unchanged != NULL);
    if (!find_component(generation, base, origin, &component))
        return true;
    state = export_verify(runner, base, component);
    if (state == COMPONENT_CHECKING)
        return false;
    if (state == COMPONENT_CORRUPT || state == COMPONENT_UNAVAILABLE) {
        if (export_is_wanted(work))
            refuse_base(work, origin, state);
        return true;
    }
    work->unchanged[runner->component] =
        find_digest(runner, base, component, sha256[0]) &&
        find_digest(runner, generation, origin->component, sha256[1]) &&
        memcmp(sha256[0], sha256[1], SHA256_BYTES) == 0;
    return true;
}
