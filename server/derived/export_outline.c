/* The outline of an export: objects selected, cut, and projected to the target. Nothing of the data
 * is read. */
#include <stdlib.h>
#include <string.h>

#include "derived/export_making.h"
#include "base/glob.h"
#include "zt/decode.h"

/* Selecting and laying out what a larger manifest names may take longer than about 10 ms. */
#define LONG_MANIFEST_BYTES 262144

/* --- objects --- */

/* globs NULL: all. */
static bool is_chosen(const struct export_query *query, struct glob_set *globs, struct zt_text name)
{
    const struct zt_text *prefix = &query->prefix;

    if (name.length < prefix->length ||
        (prefix->length > 0 && memcmp(name.bytes, prefix->bytes, prefix->length) != 0))
        return false;
    return globs == NULL || glob_set_matches(globs, name);
}

/* Writes which are chosen and returns how many. */
static uint32_t mark_objects(const struct export_work *work, struct glob_set *globs, bool *chosen)
{
    const struct zt_model *model = work->order.generation->model;
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->object_count; i++)
        count += chosen[i] =
            is_chosen(work->order.query, globs, zt_object_name(&model->objects[i]));
    return count;
}

/* NULL: failed. */
static bool *choose_objects(struct export_work *work)
{
    const struct export_query *query = work->order.query;
    bool *chosen = calloc(work->order.generation->model->object_count + (size_t)1, sizeof(*chosen));
    struct glob_set *globs =
        query->match_count > 0 ? glob_set_new(query->matches, query->match_count) : NULL;
    uint32_t count = 0;
    struct zt_error error;

    if (chosen == NULL || (globs == NULL && query->match_count > 0)) {
        export_fail_memory(work);
        goto out;
    }
    count = mark_objects(work, globs, chosen);
    if (count > 0 || (query->match_count == 0 && query->prefix.length == 0)) {
        glob_set_free(globs);
        return chosen;
    }
    zt_fail(&error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET, "no object of the model has such a name");
    export_fail(work, EXPORT_NO_OBJECT, &error);
out:
    glob_set_free(globs);
    free(chosen);
    return NULL;
}

static void select_objects(struct export_work *work)
{
    const struct zt_model *model = work->order.generation->model;
    bool *chosen = choose_objects(work);
    const struct zt_choice choice = {chosen, work->cut};
    struct zt_error error;
    enum zt_status status;

    if (chosen == NULL)
        return;
    status = zt_model_select(model, &choice, &work->selection, &work->result.verdict, &error);
    free(chosen);
    if (status == ZT_ARGUMENT)
        export_fail(work, EXPORT_NOT_CUT, &error);
    else if (status != ZT_OK)
        export_fail(work, export_failure_of(status, EXPORT_NOT_REPRESENTABLE), &error);
}

/* Which components of the generation those of the selection are, and of which objects. */
static void list_selected(struct export_work *work)
{
    const struct zt_model *model = work->selection.model;

    work->selected = calloc(model->component_count + (size_t)1, sizeof(*work->selected));
    if (work->selected == NULL) {
        export_fail_memory(work);
        return;
    }
    for (uint32_t i = 0; i < model->object_count; i++) {
        const struct zt_object *object = &model->objects[i];

        for (uint32_t j = object->first_component;
             j < object->first_component + object->component_count; j++)
            work->selected[j] = (struct export_part){work->selection.objects[i],
                                                     work->selection.components[j], 0, 0, false};
    }
}

/* --- encodings, the target --- */

/* Through the cache of decoded components, which has bounds. */
static bool is_cached(const struct zt_component *component)
{
    return !zt_component_is_plain(component) && component->encoding != ZT_ENCODING_ZSTD_SEEKABLE;
}

bool export_is_too_large(struct export_work *work, const struct export_part *part, uint64_t length)
{
    if (!is_cached(export_component_of(work, part)) || length == ZT_LENGTH_UNKNOWN ||
        length <= (uint64_t)work->order.server->config->limits.decoded_bytes)
        return false;
    export_fail_component(
        work, EXPORT_UNSUPPORTED_ENCODING, part,
        "decoded it would be larger than limits.decoded_bytes of this server allows");
    return true;
}

static void check_encodings(struct export_work *work)
{
    for (uint32_t i = 0; i < work->selection.model->component_count && !atomic_load(&work->failed);
         i++) {
        const struct export_part *part = &work->selected[i];
        const struct zt_component *component = export_component_of(work, part);

        if (component->encoding == ZT_ENCODING_UNKNOWN)
            export_fail_component(work, EXPORT_UNSUPPORTED_ENCODING, part,
                                  "its encoding cannot be decoded here");
        else
            (void)export_is_too_large(work, part, component->decoded_length);
    }
}

static void project(struct export_work *work)
{
    struct zt_error error;
    enum zt_status status = zt_model_project(work->selection.model, work->order.query->target,
                                             &work->projection, &error);

    if (status != ZT_OK)
        export_fail(work, export_failure_of(status, EXPORT_NOT_REPRESENTABLE), &error);
}

static void run_outline(struct job *job)
{
    static void (*const stages[])(struct export_work * work) = {select_objects, list_selected,
                                                                check_encodings, project};
    struct export_work *work = (struct export_work *)job;

    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]) && export_is_wanted(work); i++)
        stages[i](work);
    work->order.ended(work->order.context);
}

void export_work_outline(struct export_work *work)
{
    const struct generation *generation = work->order.generation;

    work->job.run = run_outline;
    if (generation->model->manifest_length > LONG_MANIFEST_BYTES)
        workers_submit_long(work->order.server->workers, &work->job);
    else
        workers_submit(work->order.server->workers, &work->job);
}
