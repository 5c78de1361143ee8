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

struct copying {
    const struct zt_conversion *conversion;
    struct zt_writer *writer;
    const struct zt_fingerprint *fingerprints;
    struct zt_error *error;
};

static enum zt_status fail_changed(const struct copying *copying, uint32_t component)
{
    const struct zt_model *outline = copying->conversion->projection->model;
    const struct zt_component *part = &outline->components[component];

    zt_fail(copying->error, ZT_CORRUPT, NULL, ZT_NO_OFFSET, "the file changed while it was read");
    zt_error_at(copying->error, zt_object_name(zt_component_owner(outline, part)),
                zt_component_name(part));
    return ZT_CORRUPT;
}

/* hasher is NULL if there is no fingerprint to compare with. */
static enum zt_status copy_bytes(const struct copying *copying, struct zt_conversion_reader *reader,
                                 struct zt_hasher *hasher)
{
    const uint8_t *bytes;
    size_t length;
    enum zt_status status;

    do {
        status = zt_conversion_reader_read(reader, &bytes, &length, copying->error);
        if (status == ZT_OK && hasher != NULL)
            zt_hasher_update(hasher, bytes, length);
        if (status == ZT_OK && copying->writer != NULL)
            status = zt_writer_append(copying->writer, bytes, length, copying->error);
    } while (status == ZT_OK && length > 0);
    return status;
}

static enum zt_status copy_component(const struct copying *copying, uint32_t component)
{
    struct zt_conversion_reader *reader = NULL;
    struct zt_hasher *hasher = NULL;
    struct zt_digest actual;
    enum zt_status status =
        zt_conversion_reader_open(copying->conversion, component, &reader, copying->error);

    if (status == ZT_OK && copying->fingerprints != NULL &&
        zt_hasher_new(copying->fingerprints[component].digest.algorithm, &hasher) != ZT_OK)
        status = zt_fail_memory(copying->error, "converting");
    if (status == ZT_OK)
        status = copy_bytes(copying, reader, hasher);
    if (status == ZT_OK && hasher != NULL) {
        zt_hasher_finish(hasher, &actual);
        if (!zt_digest_equal(&actual, &copying->fingerprints[component].digest))
            status = fail_changed(copying, component);
    }
    zt_hasher_free(hasher);
    zt_conversion_reader_close(reader);
    return status;
}

/* --- the whole --- */

/* An empty component may be damaged too. A writer with a plan does not ask for it, so it is read
 * here. */
static enum zt_status check_empty(struct copying *copying)
{
    const struct zt_model *outline = copying->conversion->projection->model;
    enum zt_status status = ZT_OK;

    for (uint32_t i = 0; i < outline->component_count && status == ZT_OK; i++)
        if (outline->components[i].decoded_length == 0)
            status = copy_component(copying, i);
    return status;
}

static enum zt_status copy_all(struct copying *copying, const struct zt_sink *sink)
{
    const struct zt_projection *projection = copying->conversion->projection;
    struct zt_writer_options options = copying->conversion->options;
    uint32_t component;
    enum zt_status status;

    assert(copying->writer == NULL);
    options.fingerprints = copying->fingerprints;
    status = zt_writer_begin(projection, &options, sink, &copying->writer, copying->error);
    while (status == ZT_OK && zt_writer_next(copying->writer, &component)) {
        status = zt_writer_component(copying->writer, component, copying->error);
        if (status == ZT_OK)
            status = copy_component(copying, component);
    }
    if (status == ZT_OK)
        status = zt_writer_finish(copying->writer, copying->error);
    zt_writer_free(copying->writer);
    return status;
}

enum zt_status zt_model_convert(const struct zt_conversion *conversion, const struct zt_sink *sink,
                                struct zt_error *error)
{
    struct copying copying = {
        .conversion = conversion, .fingerprints = conversion->options.fingerprints, .error = error};
    enum zt_target target = conversion->projection->target;
    struct zt_fingerprint *gathered = NULL;
    enum zt_status status = zt_conversion_check(conversion, error);

    if (status == ZT_OK && needs_fingerprints(target) && copying.fingerprints == NULL)
        status = zt_fingerprints_take(conversion, &gathered, error);
    if (gathered != NULL)
        copying.fingerprints = gathered;
    if (!needs_fingerprints(target))
        copying.fingerprints = NULL;
    assert(status != ZT_OK || needs_fingerprints(target) == (copying.fingerprints != NULL));
    if (status == ZT_OK && copying.fingerprints == NULL)
        status = check_empty(&copying);
    if (status == ZT_OK)
        status = copy_all(&copying, sink);
    free(gathered);
    return status;
}
