/* Judges a model: reads all of its bytes once, and compressed bytes a second time unless their
 * digest proves that they decode. A failure makes the file bad; what cannot be judged is counted
 * separately. */
#include "commands/judgement.h"

#include <assert.h>
#include <stdlib.h>

#include "commands/shard_files.h"
#include "zt/gaps.h"
#include "zt/verify.h"

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
    if (status == ZT_UNSUPPORTED || status == ZT_NOT_FOUND)
        note_unsupported(judgement, error);
    else if (status != ZT_OK)
        note_bad(judgement, error);
}

static struct zt_files files_of(const struct judgement *judgement)
{
    return (struct zt_files){judgement->file.source, judgement->shards};
}

/* Notes a digest that cannot be checked: the shard was then accepted by its size alone. */
static void judge_shard_digest(struct judgement *judgement, const struct zt_shard *shard)
{
    struct zt_digest digest;
    struct zt_error error;

    if (zt_digest_parse((struct zt_text){shard->digest, shard->digest_length}, &digest, &error) !=
        ZT_OK) {
        zt_fail(&error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET,
                "the digest stated for shard %.*s cannot be checked", (int)shard->name_length,
                shard->name);
        note(judgement, ZT_UNSUPPORTED, &error);
    }
}

static bool open_shards(struct judgement *judgement)
{
    const struct zt_model *model = judgement->file.model;

    if (model->shard_count == 0)
        return true;
    judgement->shards = calloc(model->shard_count, sizeof(struct zt_source *));
    if (judgement->shards == NULL)
        return false;
    for (uint32_t i = 0; i < model->shard_count; i++) {
        struct zt_error error;
        enum zt_status status =
            shard_file_open(judgement->path, &model->shards[i], &judgement->shards[i], &error);

        note(judgement, status, &error);
        if (status == ZT_OK)
            judge_shard_digest(judgement, &model->shards[i]);
    }
    return true;
}

/* A component, and the file that contains it. */
struct subject {
    const struct zt_object *object;
    const struct zt_component *component;
    struct zt_source *source;
};

static void note_about(struct judgement *judgement, const struct subject *subject,
                       enum zt_status status, struct zt_error *error)
{
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

/* False if the bytes need no further checks. */
static bool judge_digest(struct judgement *judgement, const struct subject *subject)
{
    struct zt_component_check check;
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    status = zt_component_check(judgement->file.model, subject->component, subject->source, NULL,
                                &check, &error);
    if (status != ZT_OK) {
        note_about(judgement, subject, status, &error);
        return false;
    }
    switch (check.verdict) {
    case ZT_VERDICT_VERIFIED:
        judgement->verified++;
        break;
    case ZT_VERDICT_UNDIGESTED:
        judgement->undigested++;
        break;
    case ZT_VERDICT_UNSUPPORTED:
        zt_fail(&error, ZT_UNSUPPORTED, NULL, ZT_NO_OFFSET, "digest %.100s cannot be checked",
                check.expected);
        note_about(judgement, subject, ZT_UNSUPPORTED, &error);
        break;
    case ZT_VERDICT_FAILED:
        note_wrong_digest(judgement, subject, &check, &error);
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
static enum zt_status decode_all(const struct subject *subject, struct zt_error *error)
{
    struct zt_decoder *decoder = NULL;
    size_t length = 1;
    uint8_t *block = malloc(BLOCK_BYTES);
    enum zt_status status;

    if (block == NULL)
        return zt_fail(error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "no memory to decode with");
    status = zt_decoder_open(subject->component, subject->source, &decoder, error);
    while (status == ZT_OK && length > 0)
        status = zt_decoder_read(decoder, block, BLOCK_BYTES, &length, error);
    zt_decoder_close(decoder);
    free(block);
    return status;
}

/* verified: whether the digest matched. If it covers the decoded bytes, that proves that they
 * decode. */
static bool judge_decoding(struct judgement *judgement, const struct subject *subject,
                           bool verified)
{
    const uint8_t encoding = subject->component->encoding;
    bool compressed = encoding != ZT_ENCODING_RAW && encoding != ZT_ENCODING_UNKNOWN;
    struct zt_error error;
    enum zt_status status;

    if (!compressed || (verified && !zt_digest_covers_stored(judgement->file.model)))
        return true;
    status = decode_all(subject, &error);
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
    }
    if (gap->dirty_at != ZT_NO_OFFSET && gaps->dirty++ == 0)
        gaps->first_dirty_at = gap->dirty_at;
}

static void judge_gaps(struct judgement *judgement)
{
    struct zt_error error;
    enum zt_status status = zt_gaps_walk(judgement->file.model, judgement->file.source, note_gap,
                                         &judgement->gaps, &error);

    note(judgement, status, &error);
}

void judgement_make(struct judgement *judgement, bool canonical)
{
    const struct zt_model *model = judgement->file.model;

    assert(model != NULL && judgement->shards == NULL);
    if (!open_shards(judgement)) {
        struct zt_error error;

        zt_fail(&error, ZT_NO_MEMORY, NULL, ZT_NO_OFFSET, "out of memory");
        note_bad(judgement, &error);
        return;
    }
    for (uint32_t i = 0; i < model->object_count; i++)
        judge_object(judgement, &model->objects[i]);
    if (canonical)
        judge_canonical(judgement);
    assert(judgement->verified <= model->component_count);
    if (judgement->bad == 0)
        judge_gaps(judgement);
    for (uint32_t i = 0; i < model->shard_count; i++)
        zt_source_close(judgement->shards[i]);
    free(judgement->shards);
}
