/* Fingerprints of components, for formats that state them ahead of the data: one pass over all
 * components and, for zTensor 2, a comparison of components that may have the same bytes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "write/conversion_reader.h"

/* With how many different runs of bytes of the same length and digest a component is compared;
 * beyond that it counts as different. Only files made on purpose have more, and comparing all pairs
 * would take quadratic time. */
#define CANDIDATES_MAX 8

struct gathering {
    const struct zt_conversion *conversion;
    struct zt_fingerprint *fingerprints;
    struct zt_error *error;
};

/* The target's algorithm; the cheapest one if the target states no digests. */
static enum zt_digest_algorithm algorithm_of(const struct zt_conversion *conversion)
{
    enum zt_digest_algorithm algorithm = ZT_DIGEST_XXH3;

    zt_target_fingerprint(conversion->projection->target, &algorithm);
    return algorithm;
}

/* --- lengths and digests --- */

static enum zt_status hash_bytes(struct zt_conversion_reader *reader, struct zt_hasher *hasher,
                                 uint64_t *out_length, struct zt_error *error)
{
    const uint8_t *bytes;
    size_t length;
    uint64_t total = 0;
    enum zt_status status;

    do {
        status = zt_conversion_reader_read(reader, &bytes, &length, error);
        if (status != ZT_OK)
            return status;
        zt_hasher_update(hasher, bytes, length);
        total += length;
    } while (length > 0);
    *out_length = total;
    return ZT_OK;
}

/* Uses the source's own digest if it has already been checked and is the one that the target
 * states. */
static bool take_stated(const struct zt_conversion *conversion, uint32_t component,
                        struct zt_fingerprint *out_fingerprint)
{
    const struct zt_origin *origin = &conversion->projection->origins[component];
    const struct zt_component *from = &conversion->source->components[origin->component];
    struct zt_digest digest;

    assert(origin->component < conversion->source->component_count);
    if (!conversion->trusted || origin->change != ZT_CHANGE_NONE || from->digest == NULL ||
        from->decoded_length == ZT_LENGTH_UNKNOWN ||
        !zt_digest_is_of_decoded(conversion->source, from) ||
        zt_component_digest(conversion->source, from, &digest, NULL) != ZT_OK ||
        digest.algorithm != algorithm_of(conversion))
        return false;
    *out_fingerprint = (struct zt_fingerprint){
        .length = from->decoded_length, .same_as = component, .digest = digest};
    return true;
}

enum zt_status zt_component_hash(const struct zt_conversion *conversion, uint32_t component,
                                 enum zt_digest_algorithm algorithm,
                                 struct zt_fingerprint *out_fingerprint, struct zt_error *error)
{
    struct zt_conversion_reader *reader = NULL;
    struct zt_hasher *hasher = NULL;
    struct zt_fingerprint fingerprint = {.same_as = component};
    enum zt_status status = zt_conversion_reader_open(conversion, component, &reader, error);

    if (status == ZT_OK && zt_hasher_new(algorithm, &hasher) != ZT_OK)
        status = zt_fail_memory(error, "fingerprints");
    if (status == ZT_OK)
        status = hash_bytes(reader, hasher, &fingerprint.length, error);
    if (status == ZT_OK) {
        zt_hasher_finish(hasher, &fingerprint.digest);
        *out_fingerprint = fingerprint;
    }
    zt_hasher_free(hasher);
    zt_conversion_reader_close(reader);
    return status;
}

enum zt_status zt_fingerprint_take(const struct zt_conversion *conversion, uint32_t component,
                                   struct zt_fingerprint *out_fingerprint, struct zt_error *error)
{
    if (take_stated(conversion, component, out_fingerprint))
        return ZT_OK;
    return zt_component_hash(conversion, component, algorithm_of(conversion), out_fingerprint,
                             error);
}

/* --- which are the same --- */

/* One of two components that are compared. */
struct side {
    struct zt_conversion_reader *reader;
    const uint8_t *bytes;
    size_t length;
};

static enum zt_status compare_sides(struct side sides[2], bool *out_equal, struct zt_error *error)
{
    enum zt_status status = ZT_OK;
    bool equal = true;

    while (equal && status == ZT_OK) {
        size_t part;

        for (unsigned i = 0; i < 2 && status == ZT_OK; i++)
            if (sides[i].length == 0)
                status = zt_conversion_reader_read(sides[i].reader, &sides[i].bytes,
                                                   &sides[i].length, error);
        part = sides[0].length < sides[1].length ? sides[0].length : sides[1].length;
        if (status != ZT_OK || part == 0)
            break;
        equal = memcmp(sides[0].bytes, sides[1].bytes, part) == 0;
        for (unsigned i = 0; i < 2; i++) {
            sides[i].bytes += part;
            sides[i].length -= part;
        }
    }
    /* Equal data ends together. A component of unknown length may have changed since it was hashed,
     * and then be the start of the other. */
    *out_equal = equal && sides[0].length == sides[1].length;
    return status;
}

/* Whether both are views of the same shape and strides, of one kind of words. */
static bool is_one_view(const struct zt_component *a, const struct zt_component *b)
{
    const struct zt_arrangement *x = a->arrangement;
    const struct zt_arrangement *y = b->arrangement;
    const size_t bytes = x != NULL ? x->rank * sizeof(*x->shape) : 0;

    if (a->encoding != ZT_ENCODING_STRIDED || b->encoding != ZT_ENCODING_STRIDED || x == NULL ||
        y == NULL || x->rank != y->rank || x->flip != y->flip || a->dtype != b->dtype ||
        a->big_endian != b->big_endian || a->decoded_length != b->decoded_length ||
        x->strides == NULL || y->strides == NULL)
        return false;
    return bytes == 0 ||
           (memcmp(x->shape, y->shape, bytes) == 0 && memcmp(x->strides, y->strides, bytes) == 0);
}

/* Whether both are the same run of stored bytes, as in a file that shares blobs. */
static bool is_one_place(const struct zt_conversion *conversion, uint32_t first, uint32_t second)
{
    const struct zt_origin *origins = conversion->projection->origins;
    const struct zt_component *a = &conversion->source->components[origins[first].component];
    const struct zt_component *b = &conversion->source->components[origins[second].component];

    return a->shard == b->shard && a->offset == b->offset && a->length == b->length &&
           ((zt_component_is_plain(a) && zt_component_is_plain(b)) || is_one_view(a, b)) &&
           origins[first].change == ZT_CHANGE_NONE && origins[second].change == ZT_CHANGE_NONE;
}

static enum zt_status compare_components(const struct gathering *gathering, uint32_t first,
                                         uint32_t second, bool *out_equal)
{
    struct zt_conversion quiet = *gathering->conversion;
    struct side sides[2] = {{0}};
    enum zt_status status;

    if (is_one_place(gathering->conversion, first, second)) {
        *out_equal = true;
        return ZT_OK;
    }
    quiet.progress = NULL;
    status = zt_conversion_reader_open(&quiet, first, &sides[0].reader, gathering->error);
    if (status == ZT_OK)
        status = zt_conversion_reader_open(&quiet, second, &sides[1].reader, gathering->error);
    if (status == ZT_OK)
        status = compare_sides(sides, out_equal, gathering->error);
    zt_conversion_reader_close(sides[0].reader);
    zt_conversion_reader_close(sides[1].reader);
    return status;
}

static int compare_identity(const struct zt_fingerprint *x, const struct zt_fingerprint *y)
{
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return memcmp(x->digest.bytes, y->digest.bytes, x->digest.length_bytes);
}

struct ranked {
    uint32_t component;
    uint32_t rank; /* in the order of names */
};

static int compare_ranked(const void *a, const void *b, void *fingerprints)
{
    const struct zt_fingerprint *all = fingerprints;
    const struct ranked *x = a;
    const struct ranked *y = b;
    int order = compare_identity(&all[x->component], &all[y->component]);

    return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* run holds components with the same length and digest. Finds the first one with the same bytes as
 * run[number]. */
static enum zt_status match(const struct gathering *gathering, const struct ranked *run,
                            size_t number)
{
    struct zt_fingerprint *fingerprints = gathering->fingerprints;
    unsigned candidates = 0;

    for (size_t i = 0; i < number && candidates < CANDIDATES_MAX; i++) {
        bool equal = false;
        enum zt_status status;

        assert(fingerprints[run[i].component].length == fingerprints[run[number].component].length);
        if (fingerprints[run[i].component].same_as != run[i].component)
            continue;
        candidates++;
        status = compare_components(gathering, run[i].component, run[number].component, &equal);
        if (status != ZT_OK)
            return status;
        if (equal) {
            assert(fingerprints[run[number].component].same_as == run[number].component);
            fingerprints[run[number].component].same_as = run[i].component;
            return ZT_OK;
        }
    }
    return ZT_OK;
}

static struct ranked *rank_components(const struct zt_model *outline)
{
    struct ranked *ranked = calloc(outline->component_count + (size_t)1, sizeof(*ranked));
    uint32_t rank = 0;

    for (uint32_t i = 0; ranked != NULL && i < outline->object_count; i++)
        for (uint32_t j = 0; j < outline->objects[i].component_count; j++, rank++)
            ranked[rank] = (struct ranked){outline->objects[i].first_component + j, rank};
    assert(ranked == NULL || rank == outline->component_count);
    return ranked;
}

static enum zt_status find_same(const struct gathering *gathering)
{
    const struct zt_model *outline = gathering->conversion->projection->model;
    struct ranked *ranked = rank_components(outline);
    enum zt_status status = ZT_OK;
    size_t run = 0;

    if (ranked == NULL)
        return zt_fail_memory(gathering->error, "fingerprints");
    qsort_r(ranked, outline->component_count, sizeof(*ranked), compare_ranked,
            gathering->fingerprints);
    for (size_t i = 1; i < outline->component_count && status == ZT_OK; i++) {
        const struct zt_fingerprint *fingerprint = &gathering->fingerprints[ranked[i].component];

        assert(run < i);
        if (compare_identity(&gathering->fingerprints[ranked[run].component], fingerprint) != 0)
            run = i;
        else if (fingerprint->length > 0)
            status = match(gathering, ranked + run, i - run);
    }
    free(ranked);
    return status;
}

/* --- all of it --- */

enum zt_status zt_fingerprints_match(const struct zt_conversion *conversion,
                                     struct zt_fingerprint *fingerprints, struct zt_error *error)
{
    const struct gathering gathering = {conversion, fingerprints, error};

    /* Only zTensor 2 shares blobs. */
    return conversion->projection->model->format == ZT_FORMAT_ZT2 ? find_same(&gathering) : ZT_OK;
}

enum zt_status zt_fingerprints_take(const struct zt_conversion *conversion,
                                    struct zt_fingerprint **out_fingerprints,
                                    struct zt_error *error)
{
    uint32_t count = conversion->projection->model->component_count;
    struct zt_fingerprint *fingerprints = calloc(count + (size_t)1, sizeof(*fingerprints));
    enum zt_status status = ZT_OK;

    if (fingerprints == NULL)
        return zt_fail_memory(error, "fingerprints");
    for (uint32_t i = 0; i < count && status == ZT_OK; i++)
        status = zt_fingerprint_take(conversion, i, &fingerprints[i], error);
    if (status == ZT_OK)
        status = zt_fingerprints_match(conversion, fingerprints, error);
    if (status != ZT_OK) {
        free(fingerprints);
        return status;
    }
    *out_fingerprints = fingerprints;
    return ZT_OK;
}
