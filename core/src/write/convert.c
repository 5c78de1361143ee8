/* Converting: computes fingerprints first if the target states them ahead of the data, then copies
 * every component from the source to the writer. */
#include "zt/convert.h"

#include <assert.h>
#include <stdlib.h>

#include "model/locate.h"
#include "write/conversion_reader.h"

/* Whether the target needs lengths or digests of components before they are written. */
static bool needs_fingerprints(enum zt_target target)
{
    return target == ZT_TARGET_ZT2_CANONICAL || target == ZT_TARGET_NPZ;
}

uint64_t zt_conversion_work(const struct zt_conversion *conversion)
{
    const struct zt_model *source = conversion->source;
    uint64_t total = 0;

    for (uint32_t i = 0; i < source->component_count; i++) {
        const struct zt_component *component = &source->components[i];
        uint64_t length = component->decoded_length;

        total += length != ZT_LENGTH_UNKNOWN ? length : component->length;
    }
    return needs_fingerprints(conversion->projection->target) &&
                   conversion->options.fingerprints == NULL
               ? 2 * total
               : total;
}

/* --- one component --- */

static enum zt_status fail_changed(const struct zt_conversion *conversion, uint32_t component,
                                   struct zt_error *error)
{
    const struct zt_model *outline = conversion->projection->model;
    const struct zt_component *part = &outline->components[component];

    assert(component < outline->component_count);
    zt_fail(error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "the file changed while it was read");
    zt_error_at(error, zt_object_name(zt_component_owner(outline, part)), zt_component_name(part));
    return ZT_CORRUPT;
}

/* hasher is NULL if there is no fingerprint to compare with, sink if nobody takes the bytes. */
static enum zt_status copy_bytes(struct zt_conversion_reader *reader, struct zt_hasher *hasher,
                                 const struct zt_sink *sink, struct zt_error *error)
{
    const uint8_t *bytes;
    size_t length;
    enum zt_status status;

    do {
        status = zt_conversion_reader_read(reader, &bytes, &length, error);
        if (status == ZT_OK && hasher != NULL)
            zt_hasher_update(hasher, bytes, length);
        if (status == ZT_OK && sink != NULL && length > 0)
            status = sink->take(sink->context, bytes, length, error);
    } while (status == ZT_OK && length > 0);
    return status;
}

enum zt_status zt_component_convert(const struct zt_conversion *conversion, uint32_t component,
                                    const struct zt_sink *sink, struct zt_error *error)
{
    const struct zt_fingerprint *fingerprints = conversion->options.fingerprints;
    struct zt_conversion_reader *reader = NULL;
    struct zt_hasher *hasher = NULL;
    struct zt_digest actual;
    enum zt_status status = zt_conversion_reader_open(conversion, component, &reader, error);

    if (status == ZT_OK && fingerprints != NULL &&
        zt_hasher_new(fingerprints[component].digest.algorithm, &hasher) != ZT_OK)
        status = zt_fail_memory(error, "converting");
    if (status == ZT_OK)
        status = copy_bytes(reader, hasher, sink, error);
    if (status == ZT_OK && hasher != NULL) {
        zt_hasher_finish(hasher, &actual);
        if (!zt_digest_equal(&actual, &fingerprints[component].digest))
            status = fail_changed(conversion, component, error);
    }
    zt_hasher_free(hasher);
    zt_conversion_reader_close(reader);
    return status;
}

/* --- the whole --- */

/* An empty component may be damaged too. A writer with a plan does not ask for it, so it is read
 * here. */
static enum zt_status check_empty(const struct zt_conversion *conversion, struct zt_error *error)
{
    const struct zt_model *outline = conversion->projection->model;
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < outline->component_count && status == ZT_OK; i++)
        if (outline->components[i].decoded_length == 0)
            status = zt_component_convert(conversion, i, NULL, error);
    return status;
}

static enum zt_status append(void *writer, const void *bytes, size_t length, struct zt_error *error)
{
    return zt_writer_append(writer, bytes, length, error);
}

static enum zt_status copy_all(const struct zt_conversion *conversion, const struct zt_sink *sink,
                               struct zt_error *error)
{
    struct zt_writer *writer = NULL;
    uint32_t component;
    enum zt_status status =
        zt_writer_begin(conversion->projection, &conversion->options, sink, &writer, error);

    while (status == ZT_OK && zt_writer_next(writer, &component)) {
        const struct zt_sink appending = {append, writer};

        status = zt_writer_component(writer, component, error);
        if (status == ZT_OK)
            status = zt_component_convert(conversion, component, &appending, error);
    }
    if (status == ZT_OK)
        status = zt_writer_finish(writer, error);
    zt_writer_free(writer);
    return status;
}

enum zt_status zt_model_convert(const struct zt_conversion *conversion, const struct zt_sink *sink,
                                struct zt_error *error)
{
    struct zt_conversion copying = *conversion;
    enum zt_target target = conversion->projection->target;
    struct zt_fingerprint *gathered = NULL;
    enum zt_status status = zt_conversion_check(conversion, error);

    if (status == ZT_OK && needs_fingerprints(target) && copying.options.fingerprints == NULL)
        status = zt_fingerprints_take(conversion, &gathered, error);
    if (gathered != NULL)
        copying.options.fingerprints = gathered;
    if (!needs_fingerprints(target))
        copying.options.fingerprints = NULL;
    if (status == ZT_OK && copying.options.fingerprints == NULL)
        status = check_empty(&copying, error);
    if (status == ZT_OK)
        status = copy_all(&copying, sink, error);
    free(gathered);
    return status;
}
