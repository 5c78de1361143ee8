/* Judges a model: reads all of its bytes once, and compressed bytes a second time unless their
 * digest proves that they decode. A failure makes the file bad; what cannot be judged is counted
 * separately. */
#include "files/judgement.h"

#include <assert.h>
#include <stdlib.h>

#include "base/index_sort.h"
#include "zt/gaps.h"

#define BLOCK_BYTES ((size_t)1 << 18)

static void note_bad(struct judgement *judgement, const struct zt_error *error)
{
    if (judgement->bad++ == 0)
        judgement->first_bad = *error;
}

static void note_unsupported(struct judgement *judgement, const struct zt_error *error)
{
    if (judgement->unsupported++ == 0)
        judgement->first_unsupported = *error;
}

/* Records a status as bad or unsupported. */
static void note(struct judgement *judgement, enum zt_status status, const struct zt_error *error)
{
    if (status == ZT_UNSUPPORTED || (status == ZT_NOT_FOUND && judgement->allows_missing))
        note_unsupported(judgement, error);
    else if (status != ZT_OK)
        note_bad(judgement, error);
}

static struct zt_files files_of(const struct judgement *judgement)
{
    return (struct zt_files){judgement->file.source, judgement->file.shards};
}

/* Notes a digest that is stated and cannot be checked: the shard was then accepted by its size
 * alone. */
static void judge_shard_digest(struct judgement *judgement, const struct zt_shard *shard)
{
    struct zt_digest digest;
    struct zt_error error;

    /* Others than containers of zTensor 2 have none. */
    if (shard->digest != NULL && zt_shard_digest(shard, &digest, &error) != ZT_OK) {
        zt_fail(&error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                "the digest stated for shard %.*s cannot be checked", (int)shard->name_length,
                shard->name);
        note(judgement, ZT_UNSUPPORTED, &error);
    }
}

static void open_shards(struct judgement *judgement)
{
    const struct zt_model *model = judgement->file.model;

    for (uint32_t i = 0; i < model->shard_count; i++) {
        struct zt_error error;
        enum zt_status status = opened_file_shard(&judgement->file, judgement->path, i, &error);

        note(judgement, status, &error);
        if (status == ZT_OK)
            judge_shard_digest(judgement, &model->shards[i]);
    }
}

/* A component, and the file that contains it. */
struct subject {
    const struct zt_object *object;
    const struct zt_component *component;
    struct zt_source *source;
};

/* Names the part that has the component, because offsets refer to its file. */
static void name_part(const struct judgement *judgement, const struct subject *subject,
                      enum zt_status status, struct zt_error *error)
{
    const uint32_t shard = subject->component->shard;
    const struct zt_shard *part = shard > 0 ? &judgement->file.model->shards[shard - 1] : NULL;

    assert(shard <= judgement->file.model->shard_count);
    if (status != ZT_OK && part != NULL && part->kind == ZT_SHARD_PART)
        zt_fail(error, status, error->rule, error->offset, "part %.*s: %s", (int)part->name_length,
                part->name, error->message);
}

static void note_about(struct judgement *judgement, const struct subject *subject,
                       enum zt_status status, struct zt_error *error)
{
    name_part(judgement, subject, status, error);
    zt_error_at(error, zt_object_name(subject->object), zt_component_name(subject->component));
    note(judgement, status, error);
}

/* The digest is wrong, or the bytes do not decode; in that case error already says so. */
static void note_wrong_digest(struct judgement *judgement, const struct subject *subject,
                              const struct zt_component_check *check, struct zt_error *error)
{
    if (error->status != ZT_CORRUPT) {
        zt_fail(error, ZT_CORRUPT, NULL, subject->component->offset,
                "digest is %.100s, the file states %.100s", check->actual, check->expected);
    }
    note_about(judgement, subject, ZT_CORRUPT, error);
}

/* Adds an object's components from number first on to those to check. False: no more fit, or the
 * next is in another file than the first of all. */
static bool add_components(struct judgement *judgement, const struct zt_object *object,
                           uint32_t first)
{
    const struct zt_component *components = zt_object_components(judgement->file.model, object);

    for (uint32_t i = first; i < object->component_count; i++) {
        struct zt_component_to_check *item = &judgement->checked[judgement->checked_count];

        if (judgement->checked_count == JUDGED_TOGETHER ||
            (judgement->checked_count > 0 &&
             components[i].shard != judgement->checked[0].component->shard))
            return false;
        item->component = &components[i];
        item->progress = judgement->progress;
        judgement->checked_count++;
    }
    return true;
}

/* Checks the digests of the component and of some that will be judged after it. */
static void check_digests(struct judgement *judgement, const struct subject *subject)
{
    const struct zt_model *model = judgement->file.model;
    const struct zt_object *end = model->objects + model->object_count;
    const struct zt_object *next = subject->object;
    uint32_t first = (uint32_t)(subject->component - zt_object_components(model, next));

    judgement->checked_count = 0;
    judgement->checked_used = 0;
    for (; next < end && add_components(judgement, next, first); next++)
        first = 0;
    zt_components_check(model, subject->source, judgement->checked, judgement->checked_count, NULL);
    assert(judgement->checked_count > 0);
}

/* The result for the component, valid until the next call. */
static struct zt_component_to_check *check_digest(struct judgement *judgement,
                                                  const struct subject *subject)
{
    if (judgement->checked_used == judgement->checked_count ||
        judgement->checked[judgement->checked_used].component != subject->component)
        check_digests(judgement, subject);
    assert(judgement->checked[judgement->checked_used].component == subject->component);
    return &judgement->checked[judgement->checked_used++];
}

/* False if the bytes need no further checks. */
static bool judge_digest(struct judgement *judgement, const struct subject *subject)
{
    struct zt_component_to_check *checked = check_digest(judgement, subject);
    struct zt_error error = checked->error;

    if (checked->status != ZT_OK) {
        note_about(judgement, subject, checked->status, &error);
        return false;
    }
    switch (checked->check.verdict) {
    case ZT_VERDICT_VERIFIED:
        judgement->verified++;
        break;
    case ZT_VERDICT_UNDIGESTED:
        judgement->undigested++;
        break;
    case ZT_VERDICT_UNSUPPORTED:
        zt_fail(&error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "digest %.100s cannot be checked",
                checked->check.expected);
        note_about(judgement, subject, ZT_UNSUPPORTED, &error);
        break;
    case ZT_VERDICT_FAILED:
        note_wrong_digest(judgement, subject, &checked->check, &error);
        return false;
    }
    return true;
}

/* Notes an unknown encoding or type. */
static void judge_kind(struct judgement *judgement, const struct subject *subject)
{
    const struct zt_component *component = subject->component;
    struct zt_error error;

    if (component->encoding == ZT_ENCODING_UNKNOWN) {
        zt_fail(&error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "encoding %.*s is not known",
                (int)component->encoding_length, component->encoding_name);
        note_about(judgement, subject, ZT_UNSUPPORTED, &error);
    }
    if (component->logical == ZT_LOGICAL_UNKNOWN) {
        zt_fail(&error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "type %.*s is not known",
                (int)component->type_length, component->type);
        note_about(judgement, subject, ZT_UNSUPPORTED, &error);
    }
}

/* Decodes everything: the result must have exactly the declared length. */
static enum zt_status decode_all(const struct judgement *judgement, const struct subject *subject,
                                 struct zt_error *error)
{
    struct zt_decoder *decoder = NULL;
    size_t length = 1;
    uint8_t *block = malloc(BLOCK_BYTES);
    enum zt_status status;

    if (block == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to decode with");
    status = zt_decoder_open(subject->component, subject->source, &decoder, error);
    while (status == ZT_OK && length > 0) {
        status = zt_decoder_read(decoder, block, BLOCK_BYTES, &length, error);
        if (status == ZT_OK && judgement->progress != NULL)
            judgement->progress->advance(judgement->progress->context, length);
    }
    zt_decoder_close(decoder);
    free(block);
    return status;
}

static bool is_encoded(const struct zt_component *component)
{
    return component->encoding != ZT_ENCODING_RAW && component->encoding != ZT_ENCODING_STRIDED &&
           component->encoding != ZT_ENCODING_UNKNOWN;
}

/* verified: whether the digest matched. If it covers the decoded bytes, that proves that they
 * decode. */
static bool judge_decoding(struct judgement *judgement, const struct subject *subject,
                           bool verified)
{
    const bool compressed = is_encoded(subject->component);
    struct zt_error error;
    enum zt_status status;

    if (!compressed || (verified && !zt_digest_covers_stored(judgement->file.model)))
        return true;
    status = decode_all(judgement, subject, &error);
    if (status != ZT_OK)
        note_about(judgement, subject, status, &error);
    return status == ZT_OK;
}

/* False if the bytes are wrong or missing, so that their content need not be checked. */
static bool judge_component(struct judgement *judgement, const struct zt_object *object,
                            const struct zt_component *component)
{
    const struct zt_files files = files_of(judgement);
    struct subject subject = {
        .object = object, .component = component, .source = zt_files_source(&files, component)};
    uint32_t verified;

    judge_kind(judgement, &subject);
    verified = judgement->verified;
    return subject.source != NULL && judge_digest(judgement, &subject) &&
           judge_decoding(judgement, &subject, judgement->verified > verified);
}

static void judge_object(struct judgement *judgement, const struct zt_object *object)
{
    const struct zt_model *model = judgement->file.model;
    uint32_t unsupported = judgement->unsupported;
    bool readable = true;
    struct zt_files files;
    struct zt_error error;
    enum zt_status status;

    for (uint32_t i = 0; i < object->component_count; i++) {
        readable =
            judge_component(judgement, object, &zt_object_components(model, object)[i]) && readable;
    }
    if (!readable)
        return;
    files = files_of(judgement);
    status = zt_object_check(model, object, &files, &error);
    /* An unknown encoding is counted only once. */
    if (status != ZT_UNSUPPORTED || judgement->unsupported == unsupported)
        note(judgement, status, &error);
}

static void judge_canonical(struct judgement *judgement)
{
    struct zt_error error;
    enum zt_status status =
        zt_canonical_check(judgement->file.model, judgement->file.source, &error);

    if (status == ZT_ARGUMENT) {
        zt_fail(&error, status, NULL, ZT_NO_OFFSET,
                "not canonical: only zTensor 2 has a canonical form");
    }
    note(judgement, status, &error);
}

static void note_gap(void *context, const struct zt_gap *gap)
{
    struct judged_gaps *gaps = context;

    if (!gap->is_padding && gaps->unreferenced++ == 0) {
        gaps->first_offset = gap->offset;
        gaps->first_length = gap->length;
        gaps->first_part = gaps->part;
    }
    if (gap->dirty_at != ZT_NO_OFFSET && gaps->dirty++ == 0) {
        gaps->first_dirty_at = gap->dirty_at;
        gaps->first_dirty_part = gaps->part;
    }
}

/* Only the parts, as separate models, know where their tensors begin. */
static void judge_gaps_of_part(struct judgement *judgement, const struct zt_shard *part,
                               struct zt_source *source)
{
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status = zt_model_open(source, &model, &error);

    judgement->gaps.part = part;
    if (status == ZT_OK)
        status = zt_gaps_walk(model, source, note_gap, &judgement->gaps, &error);
    note(judgement, status, &error);
    zt_model_free(model);
}

static void judge_gaps(struct judgement *judgement)
{
    const struct zt_model *model = judgement->file.model;
    struct zt_error error;
    enum zt_status status =
        zt_gaps_walk(model, judgement->file.source, note_gap, &judgement->gaps, &error);

    note(judgement, status, &error);
    for (uint32_t i = 0; i < model->shard_count; i++)
        if (model->shards[i].kind == ZT_SHARD_PART)
            judge_gaps_of_part(judgement, &model->shards[i], judgement->file.shards[i]);
}

static bool is_after(const void *context, uint32_t a, uint32_t b)
{
    const struct zt_component *components = context;
    const struct zt_component *one = &components[a];
    const struct zt_component *other = &components[b];

    if (one->shard != other->shard)
        return one->shard > other->shard;
    if (one->offset != other->offset)
        return one->offset > other->offset;
    return one->length > other->length;
}

/* The decoded bytes of components whose stored bytes another one before them has too. */
static bool shared_bytes(const struct zt_model *model, uint64_t *out_bytes)
{
    const struct zt_index_order order = {is_after, model->components};
    uint32_t *sorted = NULL;
    uint64_t bytes = 0;

    if (zt_index_make(model->component_count, &order, &sorted) != ZT_OK)
        return false;
    for (uint32_t i = 1; i < model->component_count; i++)
        if (!is_after(model->components, sorted[i], sorted[i - 1]))
            bytes += model->components[sorted[i]].decoded_length;
    free(sorted);
    *out_bytes = bytes;
    return true;
}

/* Writers count tensors that share their bytes once, or each of them: neither is wrong. */
static void judge_stated_size(struct judgement *judgement)
{
    const struct zt_model *model = judgement->file.model;
    const uint64_t stated = judgement->file.total_size_bytes;
    uint64_t shared = 0;
    uint64_t all = 0;

    if (!judgement->file.states_total_size)
        return;
    for (uint32_t i = 0; i < model->component_count; i++) {
        const struct zt_component *component = &model->components[i];

        if (component->decoded_length == ZT_LENGTH_UNKNOWN)
            return;
        all += component->decoded_length;
    }
    if (shared_bytes(model, &shared) && stated != all && stated != all - shared)
        judgement->differing_size_bytes = all;
}

uint64_t judgement_work(const struct zt_model *model)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < model->component_count; i++) {
        const struct zt_component *component = &model->components[i];

        if (component->digest != NULL)
            bytes += component->length;
        if (is_encoded(component) && component->decoded_length != ZT_LENGTH_UNKNOWN &&
            (component->digest == NULL || zt_digest_covers_stored(model)))
            bytes += component->decoded_length;
    }
    return bytes;
}

void judgement_make(struct judgement *judgement, bool canonical)
{
    const struct zt_model *model = judgement->file.model;

    assert(model != NULL);
    open_shards(judgement);
    for (uint32_t i = 0; i < model->object_count; i++)
        judge_object(judgement, &model->objects[i]);
    if (canonical)
        judge_canonical(judgement);
    assert(judgement->verified <= model->component_count);
    if (judgement->bad == 0)
        judge_gaps(judgement);
    judge_stated_size(judgement);
}
