#include "download/replaceable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "zt/join.h"
#include "zt/model.h"

#define BLOCK_BYTES ((size_t)64 << 10)
/* The rule in errors about content of an unknown format (docs/rules). */
#define UNKNOWN_RULE "zt §Detection UnknownFormat"

/* Returns true for other kinds of content that a reader recognises, such as ZIP archives without
 * arrays and HDF5: they are unsupported without a rule. */
static bool is_other_kind(const struct zt_error *error)
{
    return error->rule == NULL ? error->status == ZT_UNSUPPORTED
                               : strcmp(error->rule, UNKNOWN_RULE) == 0;
}

/* Returns true for a model, even a damaged one. */
static bool is_model(struct zt_source *source)
{
    struct zt_model *model = NULL;
    struct zt_error error;
    enum zt_status status;

    zt_error_clear(&error);
    status = zt_model_open(source, &model, &error);
    zt_model_free(model);
    if (status == ZT_IO || status == ZT_NO_MEMORY)
        return false;
    return status == ZT_OK || !is_other_kind(&error);
}

static bool is_index(struct zt_source *source)
{
    struct zt_index *index = NULL;
    struct zt_error error;
    const bool is_read = zt_index_read(source, &index, &error) == ZT_OK;

    zt_index_free(index);
    return is_read;
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
    return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

static bool holds_only_zeros(struct zt_source *source)
{
    const uint64_t size = zt_source_size(source);
    uint8_t *block = malloc(BLOCK_BYTES);
    bool only_zeros = block != NULL;
    struct zt_error error;

    for (uint64_t at = 0; only_zeros && at < size; at += BLOCK_BYTES) {
        const size_t length = size - at < BLOCK_BYTES ? (size_t)(size - at) : BLOCK_BYTES;

        only_zeros =
            zt_source_read_at(source, at, block, length, &error) == ZT_OK && is_zero(block, length);
    }
    free(block);
    return only_zeros;
}

enum zt_status replaceable_check(const char *path, struct zt_error *error)
{
    struct zt_source *source = NULL;
    struct zt_error ignored;
    bool may_go;

    if (access(path, F_OK) != 0 && errno == ENOENT)
        return ZT_OK;
    may_go = zt_source_open_file(path, &source, &ignored) == ZT_OK &&
             (is_model(source) || is_index(source) || holds_only_zeros(source));
    zt_source_close(source);
    if (may_go)
        return ZT_OK;
    return zt_fail(error, ZT_ARGUMENT, NULL, ZT_NO_OFFSET,
                   "a file with this name exists and is not a tensor file; --force replaces it");
}
