/* Data that is gathered from its file is one more file, whose bytes are computed during reading:
 * stored data directly, other data from the component that was decoded last. */
#include "commands/rank_share.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/thread.h"
#include "files/decoded_file.h"
#include "selection/matches.h"
#include "zt/component_view.h"

/* read_decoded's: what is read of the view, and where to. */
struct reading {
    uint64_t offset;
    void *buffer;
    size_t length;
};

#define NONE UINT32_MAX

struct share {
    struct rank_share base; /* first: the public part is the share */
    const struct opened_file *file;
    const struct share_wish *wish;
    bool *chosen;
    int64_t *axes;
    struct zt_selection selection;
    uint32_t *owners; /* of each component of the selection, its object in the file's model */
    struct zt_source *cuts;
    pthread_mutex_t lock; /* guards the members below */
    uint32_t decoded_component;
    struct decoded_file decoded;
};

/* --- selecting --- */

static const struct zt_cut *cut_of(const struct share *share)
{
    return share->wish->cut.parts > 0 ? &share->wish->cut : NULL;
}

static enum zt_status choose(struct share *share, struct zt_error *error)
{
    const struct zt_model *model = share->file->model;
    const struct share_wish *wish = share->wish;
    struct glob_set *globs = glob_set_new(wish->matches, wish->match_count);

    share->chosen = calloc(model->object_count + (size_t)1, sizeof(*share->chosen));
    if (globs == NULL || share->chosen == NULL) {
        glob_set_free(globs);
        return zt_fail_memory(error, "a selection");
    }
    for (uint32_t i = 0; i < model->object_count; i++)
        share->chosen[i] =
            wish->match_count == 0 || glob_set_matches(globs, zt_object_name(&model->objects[i]));
    glob_set_free(globs);
    return matches_check((struct zt_text){"", 0}, wish->matches, wish->match_count, model, error);
}

static enum zt_status choose_axes(struct share *share, const struct axis_set **out_suggestion,
                                  struct zt_error *error)
{
    const struct share_wish *wish = share->wish;

    if (cut_of(share) == NULL)
        return ZT_OK;
    if (wish->rule_count == 0 && wish->cut.parts > 1)
        *out_suggestion = axis_set_suggest(share->file->model);
    return axis_rules_apply(wish->rules, wish->rule_count, share->file->model, share->chosen,
                            &share->axes, error);
}

static enum zt_status select_objects(struct share *share, struct zt_error *error)
{
    const struct zt_choice choice = {share->chosen, cut_of(share), share->axes,
                                     share->wish->to_f32};
    enum zt_slice_verdict verdict;

    return zt_model_select(share->file->model, &choice, &share->selection, &verdict, error);
}

/* --- verifying what is cut --- */

static struct zt_source *file_of(const struct share *share, const struct zt_component *component)
{
    return share->base.files[component->shard];
}

static bool is_cut(const struct share *share, uint32_t object)
{
    return share->axes != NULL && share->chosen[object] && share->axes[object] != ZT_AXIS_NONE;
}

static enum zt_status check_component(const struct share *share,
                                      const struct zt_component *component,
                                      const struct zt_progress *progress, struct zt_error *error)
{
    struct zt_component_check check;
    enum zt_status status;

    if (component->digest == NULL)
        return ZT_OK;
    status = zt_component_check(share->file->model, component, file_of(share, component), progress,
                                &check, error);
    if (status != ZT_OK || check.verdict != ZT_VERDICT_FAILED)
        return status;
    return zt_fail(error, ZT_CORRUPT, NULL, component->offset,
                   "digest is %.100s, the file states %.100s", check.actual, check.expected);
}

static enum zt_status check_cut(struct share *share, const struct zt_progress *progress,
                                struct zt_error *error)
{
    const struct zt_model *model = share->file->model;
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < model->object_count && status == ZT_OK; i++) {
        const struct zt_object *object = &model->objects[i];
        const struct zt_component *data = zt_object_components(model, object);

        if (!is_cut(share, i))
            continue;
        assert(object->component_count == 1);
        share->base.is_sequential |= !zt_component_is_plain(data);
        if (file_of(share, data) == NULL)
            status = zt_fail(error, ZT_NOT_FOUND, NULL, ZT_NO_OFFSET,
                             "the file that holds its data is missing");
        else
            status = check_component(share, data, progress, error);
        if (status != ZT_OK)
            zt_error_at(error, zt_object_name(object), zt_component_name(data));
    }
    return status;
}

/* --- the file of cuts --- */

/* The lock is held. */
static enum zt_status decode(struct share *share, uint32_t number, struct zt_error *error)
{
    const struct zt_component *component = &share->file->model->components[number];
    enum zt_status status;

    assert(lock_is_held(&share->lock));
    if (share->decoded_component == number)
        return ZT_OK;
    if (share->decoded_component != NONE)
        decoded_file_close(&share->decoded);
    share->decoded_component = NONE;
    status = decoded_file_open(component, file_of(share, component), &share->decoded, error);
    if (status == ZT_OK)
        share->decoded_component = number;
    return status;
}

static enum zt_status read_decoded(struct share *share, uint32_t number,
                                   struct zt_component_view *view, const struct reading *reading,
                                   struct zt_error *error)
{
    enum zt_status status;

    pthread_mutex_lock(&share->lock);
    status = decode(share, number, error);
    view->source = share->decoded.source;
    view->base = share->decoded.base;
    if (status == ZT_OK)
        status =
            zt_component_view_read(view, reading->offset, reading->buffer, reading->length, error);
    pthread_mutex_unlock(&share->lock);
    return status;
}

/* component: of the selection. */
static enum zt_status read_cut(void *context, uint32_t component, uint64_t offset, void *buffer,
                               size_t length, struct zt_error *error)
{
    struct share *share = context;
    const struct zt_model *model = share->file->model;
    const uint32_t number = share->selection.components[component];
    const struct zt_component *data = &model->components[number];
    const struct zt_object *object = &model->objects[share->owners[component]];
    struct zt_cut cut = share->wish->cut;
    struct zt_slice slice;
    struct zt_component_view view = {0};
    const struct reading reading = {offset, buffer, length};

    assert(number < model->component_count && share->owners[component] < model->object_count);
    view.source = file_of(share, data);
    view.base = data->offset;
    cut.axis = share->axes[share->owners[component]];
    zt_object_cut(model, object, &cut, share->wish->to_f32, &slice);
    view.cut = &slice;
    if (share->wish->to_f32)
        view.widening = zt_widening_to_f32(model, object);
    if (!zt_component_is_plain(data))
        return read_decoded(share, number, &view, &reading, error);
    return zt_component_view_read(&view, offset, buffer, length, error);
}

static enum zt_status list_files(struct share *share, struct zt_error *error)
{
    const uint32_t shards = share->file->model->shard_count;

    share->base.files = calloc(shards + (size_t)2, sizeof(*share->base.files));
    if (share->base.files == NULL)
        return zt_fail_memory(error, "a share");
    share->base.files[0] = share->file->source;
    for (uint32_t i = 0; i < shards; i++)
        share->base.files[i + 1] = share->file->shards[i];
    return ZT_OK;
}

static bool find_owners(struct share *share)
{
    const struct zt_model *model = share->selection.model;

    share->owners = calloc(model->component_count + (size_t)1, sizeof(*share->owners));
    for (uint32_t i = 0; share->owners != NULL && i < model->object_count; i++)
        for (uint32_t j = 0; j < model->objects[i].component_count; j++)
            share->owners[model->objects[i].first_component + j] = share->selection.objects[i];
    return share->owners != NULL;
}

static enum zt_status open_cuts(struct share *share, struct zt_error *error)
{
    const struct zt_component_bytes bytes = {read_cut, share};
    enum zt_status status;

    if (!find_owners(share))
        return zt_fail_memory(error, "a share");
    status = zt_file_plan_source(&share->selection.cuts, &bytes, &share->cuts, error);
    share->base.files[share->file->model->shard_count + 1] = share->cuts;
    return status;
}

/* --- the whole --- */

enum zt_status rank_share_make(const struct opened_file *file, const struct share_wish *wish,
                               const struct zt_progress *progress, struct rank_share **out_share,
                               const struct axis_set **out_suggestion, struct zt_error *error)
{
    struct share *share = calloc(1, sizeof(*share));
    enum zt_status status;

    *out_suggestion = NULL;
    if (share == NULL)
        return zt_fail_memory(error, "a share");
    share->file = file;
    share->wish = wish;
    share->decoded_component = NONE;
    pthread_mutex_init(&share->lock, NULL);
    status = list_files(share, error);
    if (status == ZT_OK)
        status = choose(share, error);
    if (status == ZT_OK)
        status = choose_axes(share, out_suggestion, error);
    if (status == ZT_OK)
        status = select_objects(share, error);
    if (status == ZT_OK)
        status = check_cut(share, progress, error);
    if (status == ZT_OK)
        status = open_cuts(share, error);
    share->base.model = share->selection.model;
    if (status == ZT_OK)
        *out_share = &share->base;
    else
        rank_share_free(&share->base);
    return status;
}

void rank_share_free(struct rank_share *base)
{
    struct share *share = (struct share *)base;

    if (share == NULL)
        return;
    if (share->decoded_component != NONE)
        decoded_file_close(&share->decoded);
    zt_source_close(share->cuts);
    zt_selection_free(&share->selection);
    free(share->base.files);
    free(share->owners);
    free(share->chosen);
    free(share->axes);
    pthread_mutex_destroy(&share->lock);
    free(share);
}
